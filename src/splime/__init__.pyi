from . import leakage as leakage
from .datasets import World as World
from .datasets import load as load
from .embedding.settings import Settings as Settings
from .errors import (
    DataError as DataError,
)
from .errors import (
    DownloadError as DownloadError,
)
from .errors import (
    SplimeError as SplimeError,
)
from .errors import (
    UsageError as UsageError,
)
from .evaluation import (
    Evaluation as Evaluation,
)
from .evaluation import (
    evaluate_facts as evaluate_facts,
)
from .evaluation import (
    evaluate_predicates as evaluate_predicates,
)
from .evaluation import (
    evaluate_triples as evaluate_triples,
)
from .exports import (
    export as export,
)
from .exports import (
    labelled_triples as labelled_triples,
)
from .exports import (
    to_pykeen as to_pykeen,
)
from .graph import Fact as Fact
from .graph import Facts as Facts
from .graph import TemporalGraph as TemporalGraph
from .io import (
    load_segmentation as load_segmentation,
)
from .io import (
    read as read,
)
from .io import (
    save as save,
)
from .io import (
    save_segmentation as save_segmentation,
)
from .io import (
    to_table as to_table,
)
from .io import (
    write_text as write_text,
)
from .methods import (
    METHODS as METHODS,
)
from .methods import (
    ChangePointSplit as ChangePointSplit,
)
from .methods import (
    Merge as Merge,
)
from .methods import (
    RandomSplit as RandomSplit,
)
from .methods import (
    Split as Split,
)
from .methods import (
    Timestamp as Timestamp,
)
from .methods import (
    Vanilla as Vanilla,
)
from .methods import (
    make_method as make_method,
)
from .plans import (
    Plan as Plan,
)
from .plans import (
    PlannedRun as PlannedRun,
)
from .plans import (
    carry_out as carry_out,
)
from .plans import (
    read_plan as read_plan,
)
from .plans import (
    standard_methods as standard_methods,
)
from .query import Answer as Answer
from .query import Answers as Answers
from .query import Query as Query
from .report.page import write_page as write_page
from .runs import Run as Run
from .runs import evaluate as evaluate
from .runs import train as train
from .runs.comparing import Comparison as Comparison
from .runs.comparing import compare as compare
from .runs.smoothness import smoothness as smoothness
from .segmentation import Segmentation as Segmentation
from .splitting import split_graph as split_graph
from .static import StaticGraph as StaticGraph
from .static import apply as apply
from .statistics import describe as describe
from .timeline import Timeline as Timeline
from .times import parse_times as parse_times
from .training.engines import make_settings as make_settings
from .tuning import Tuned as Tuned
from .tuning import tune as tune
from .vocabulary import Vocabulary as Vocabulary

__version__: str
