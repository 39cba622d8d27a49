from . import leakage as leakage
from .analysis import Comparison as Comparison, compare as compare, smoothness as smoothness
from .analysis.backtest import Backtest as Backtest, backtest as backtest
from .analysis.hidden import Trust as Trust, trust as trust
from .analysis.rules import Rule as Rule, Rules as Rules, rules as rules
from .datasets import (
    Inspection as Inspection,
    Transformed as Transformed,
    inspect as inspect,
    load as load,
    transform as transform,
)
from .errors import (
    DataError as DataError,
    DownloadError as DownloadError,
    SplimeError as SplimeError,
    UsageError as UsageError,
)
from .evaluation import (
    Evaluation as Evaluation,
    evaluate_facts as evaluate_facts,
    evaluate_predicates as evaluate_predicates,
    evaluate_triples as evaluate_triples,
)
from .explorer import explore as explore
from .exports import (
    export as export,
    labelled_triples as labelled_triples,
    to_pykeen as to_pykeen,
)
from .graph import Fact as Fact, Facts as Facts, TemporalGraph as TemporalGraph
from .io import (
    load_segmentation as load_segmentation,
    read as read,
    save as save,
    save_segmentation as save_segmentation,
    to_table as to_table,
    write_text as write_text,
)
from .methods import (
    METHODS as METHODS,
    ChangePointSplit as ChangePointSplit,
    Merge as Merge,
    RandomSplit as RandomSplit,
    Split as Split,
    Timestamp as Timestamp,
    Vanilla as Vanilla,
    make_method as make_method,
    standard_methods as standard_methods,
)
from .plans import (
    Plan as Plan,
    PlannedRun as PlannedRun,
    PlanResult as PlanResult,
    carry_out as carry_out,
    execute as execute,
    read_plan as read_plan,
    run as run,
)
from .progress import progress_bar as progress_bar
from .query import (
    Answer as Answer,
    Answers as Answers,
    Doubt as Doubt,
    Doubts as Doubts,
    Prediction as Prediction,
    Predictions as Predictions,
    Query as Query,
    ask as ask,
    doubts as doubts,
    predict as predict,
)
from .reporting.showing import plot as plot, report as report, write_page as write_page
from .runs import (
    Run as Run,
    combine as combine,
    evaluate as evaluate,
    train as train,
    update as update,
)
from .scoring.scorer import Scorer as Scorer
from .segmentation import Segmentation as Segmentation
from .serving.api import serve as serve
from .settings import Settings as Settings
from .splitting import split_graph as split_graph
from .static import StaticGraph as StaticGraph, apply as apply
from .statistics import describe as describe
from .streaming import StreamResult as StreamResult
from .timeline import Timeline as Timeline
from .times import parse_times as parse_times
from .training.registry import make_settings as make_settings
from .tuning import Tuned as Tuned, TuningResult as TuningResult, tune as tune
from .vocabulary import Vocabulary as Vocabulary
from .workers import Parallel as Parallel

__version__: str
__all__: list[str]
