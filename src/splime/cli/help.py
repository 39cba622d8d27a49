"""What `--help` shows: the main options, those of a model, or all of them with `--help-all`."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from typer.core import TyperCommand, TyperGroup

from splime.cli.options import HELP_ALL, MODEL, folded


class Group(TyperGroup):
    """A group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        _name_values(self.get_params(ctx))
        super().format_help(ctx, formatter)


class Command(TyperCommand):
    """A command with a short help; its errors say how to give a name that looks like an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        # `--help` ends parsing before the model is known.
        words = [word for arg in args for word in arg.split("=", 1)]
        models = (name for word, name in pairwise(words) if word == "--model")
        ctx.meta[MODEL] = next(models, None)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # "No such option"; the class has another place in every version of typer.
            if getattr(error, "possibilities", ...) in (None, []):
                error.message += "; a name that begins with - goes after all options and a --"  # type: ignore[attr-defined]
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        params = self.get_params(ctx)
        _name_values(params)
        # Not hidden for good: completion and docs/commands.md have all of them.
        hidden = [] if HELP_ALL in ctx.meta else folded(params, ctx.meta.get(MODEL))
        for param in hidden:
            param.hidden = True
        super().format_help(ctx, formatter)
        for param in hidden:
            param.hidden = False


def _name_values(params: list[Any]) -> None:
    """Show N, X and TEXT for values instead of types of Python, and nothing for flags."""
    names = {"<int>": "N", "<float>": "X"}

    def name(param: Any, ctx: Any) -> str | None:
        if param.param_type_name == "argument" or param.is_flag:
            return None
        return param.metavar or names.get(param.display_type(ctx), "TEXT")

    for param in params:
        param.display_type_rich = partial(name, param)
