"""Fetches published files over HTTP(S) by pooch: checked, and kept only if every byte is right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import splime
from splime.errors import DownloadError
from splime.progress import Progress, silent

TIMEOUT = 30.0  # seconds without a byte after which a connection has failed
_RETRIES = 2
_CHUNK = 1 << 16


@dataclass(frozen=True)
class RemoteFile:
    """A published file: name in the target folder, address, checksum in hex, and bytes."""

    name: str
    url: str
    sha256: str
    size: int


def fetch(file: RemoteFile, folder: Path, *, progress: Progress = silent) -> Path:
    """Make sure that a file lies in `folder` with the right checksum; return its path.

    The bytes go to a temporary file that is moved into place when its checksum is right, so several
    processes may fetch the same file. A failed connection is tried again, a refusal is not. Bytes,
    silence and redirections have limits.
    """
    import requests

    with catch_warnings(action="ignore"):  # its bar, which is not used, asks for widgets
        import pooch

    target = folder / file.name
    by_hand = (
        f"You can put {file.name} into {folder} by hand, or into a folder of your own and name that"
        " folder in the environment variable SPLIME_DATA."
    )

    try:
        if target.exists():
            if (checksum := pooch.file_hash(str(target))) != file.sha256:
                raise DownloadError(
                    f"{target} is not the published file: its SHA-256 is {checksum}, expected was"
                    f" {file.sha256}. Delete it to download it again."
                )
            return target
        pooch.get_logger().setLevel("WARNING")  # else it announces every file
        registry, urls = {file.name: file.sha256}, {file.name: file.url}
        source = pooch.Pooch(folder, "", registry, urls, retry_if_failed=_RETRIES)
        source.fetch(file.name, downloader=partial(_download, file, by_hand, progress))
    except requests.RequestException as error:
        raise DownloadError(
            f"{file.url}: {error}. The network or the host seems to be down. {by_hand}"
        ) from error
    except ValueError as error:
        raise DownloadError(
            f"{file.url} sent other bytes than the published ones, which were thrown away: {error}"
        ) from error
    except OSError as error:
        raise DownloadError(f"Cannot keep {file.name} in {folder}: {error}. {by_hand}") from error
    return target


def _download(
    file: RemoteFile, by_hand: str, progress: Progress, url: str, path: Any, _: object
) -> None:
    """Download for pooch, which tries again after errors of requests and wrong bytes."""
    import requests
    from requests.exceptions import InvalidSchema, InvalidURL, MissingSchema, TooManyRedirects

    headers = {"User-Agent": f"splime/{splime.__version__}", "Accept-Encoding": "identity"}
    Path(path).unlink()  # only its owner may read pooch's file, but a cache may be shared
    try:
        with (
            requests.get(url, headers=headers, timeout=TIMEOUT, stream=True) as response,
            Path(path).open("wb") as out,
        ):
            response.raise_for_status()
            for chunk in response.iter_content(_CHUNK):
                out.write(chunk)
                if out.tell() > file.size:
                    raise ValueError(f"more than the {file.size:,} bytes that it has")
                progress(file.name, out.tell(), file.size)
    except (InvalidSchema, InvalidURL, MissingSchema, TooManyRedirects) as error:
        raise DownloadError(
            f"{url} is not the address of a file: {error}. Is SPLIME_MIRROR set to"
            f" something else? {by_hand}"
        ) from error
    except requests.HTTPError as error:
        if response.status_code >= 500 or response.status_code == 429:
            raise
        raise DownloadError(f"{error}. {by_hand}") from error
