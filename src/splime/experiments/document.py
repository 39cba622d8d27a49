"""`docs/paper.md`: every table beside the paper's, made from the results so as not to drift."""

from __future__ import annotations

from pathlib import Path

from splime.experiments.exact import datasets_table, duplicates_table, read_counts
from splime.experiments.results import Results
from splime.experiments.studies import STUDIES

COUNTS = "counts.json"
"""The results of the tables that need no training."""


def document(results: Path) -> str:
    """The text, from a folder of results."""
    counts = read_counts(results / COUNTS)
    tables = {
        name: [table.to_markdown() for table in study.tables(Results(results / f"{name}.json"))]
        for name, study in STUDIES.items()
    }
    *main, why = tables["main"]
    parts = [
        _BEGIN,
        datasets_table(counts).to_markdown(),
        duplicates_table(counts).to_markdown(),
        _FILTERS,
        *tables["filters"],
        _AFTER_FILTERS,
        _MAIN,
        *main,
        _MAIN_PICTURE,
        _WHY,
        why,
        _GRID,
        *tables["grid"],
        _GRID_PICTURES,
        _PREDICATES,
        *tables["predicates"],
        _TSNE,
        *tables["tsne"],
        _PICTURES,
        _FAIR,
        *tables["fair"],
    ]
    return "\n".join(part.strip() + "\n" for part in parts)


_BEGIN = """
# The paper's tables

Made by `splime reproduce document` from the files in
[experiments/results](../experiments/results): do not edit it. Each file holds, for each training,
its configuration, figures, versions, seed, device and date. Where two figures stand together, the
paper's is in brackets.

```sh
splime reproduce main                      # a table from the results, beside the paper's
splime reproduce main --row "yago11k van" --run --results mine    # run a row again
splime reproduce main --quick              # a small part, some minutes on two cores
splime reproduce fair --run --device cuda --processes 8           # whatever is missing
splime reproduce document > docs/paper.md
```

Eight trainings at once on one H200 under NVIDIA's MPS take 12,100 steps of the paper's TransE a
second, one by itself 4,200 (without MPS several are no faster than one). So the main table took
five minutes, the grid seven, the fair comparison with its search eighteen.

## Datasets and duplicates

`splime reproduce datasets`, `splime reproduce duplicates`: seconds, and exact.
"""
_FILTERS = """
## Leak filters

`splime reproduce filters`. TransE without time, in the three set-ups of the paper's appendix.
Without intra-set filtering HyTE's and RotatE's set-ups learn from repeated rows and are tested on
them; AmpliGraph drops them in any case, so its `none` is `intra`, and its `inter` is `both`.
HyTE's batches of 50,000 are larger than most of these train sets: then a batch is all of train.
"""
_AFTER_FILTERS = """
The drop is there in every set-up, and of about the paper's size. Where levels differ: the margin
that was really used is 3, not the printed 1 (with 3, AmpliGraph's lines come out, Wikidata12k a
little higher, as in the main table). RotatE's code also divides the learning rate by ten half-way
and weighs triples by how rare they are, which the paper's table of settings does not have and
which is not done here; that may be why Wikidata12k is lower (not tested). HyTE's set-up takes 500
to 1,000 steps with a rate of 0.0001, so that its figures are those of a training that has hardly
begun.
"""
_MAIN = """
## Main table

`splime reproduce main`. TransE with the settings that were really used (preset `paper`), cuts
fitted on all splits, protocol `triple`, filter `inter`. Three seeds; random 7, 7 and 5, each with
cuts of its own. ± is the standard deviation over the runs. The picture below is from
`splime reproduce main --figures DIR`.
"""
_MAIN_PICTURE = """
![The printed MRR of every row, and ours](../experiments/figures/main.png)
"""
_WHY = """
### Where it differs, and why

- **ICEWS14** and **YAGO11k** come out within .015, but for YAGO11k split by time (-.016: Hits@3
  and Hits@10 agree, Hits@1 is 5.5 and not 9.0, whatever was switched on). What changes places in
  the order lies within .01 of each other, in the paper and here.
- **Wikidata12k split by time, by count and at random** are .034, .041 and .035 higher than printed.
  A rule explains it: the text leaves a fact that only begins or ends at the cut on its side, and so
  do the paper's public code and this library; Algorithm 2 puts it on both sides. By Algorithm 2
  they come out within .015 of the paper (.330, .310, .278; random over three draws that lie as far
  apart as .226 and .345), and in its order: merge, timestamp, change points and split by time
  within .002, split by count, random, vanilla. Elsewhere the two rules give the same within .005.
- **Wikidata12k vanilla** is .016 higher than printed, as in an independent plain PyTorch version of
  the paper's training (.231). Without the facts whose end is unknown it comes out: .206, or, where
  only test lacks them, .211 with all of Hits@1, 3 and 10 within a point of the paper's. But merge
  without them falls to .278, far below the printed .358, so the printed rows would stem from
  different facts; the paper does not say so.
- **Change points** come out only with segments of at least two timestamps, which the paper's
  version of ruptures forced on it (reference: accident a); with the printed minimum of one,
  Wikidata12k loses a quarter of its MRR (below). The numbers of predicates differ since the
  paper's code also remembered neighbourhoods by timestamp and entity and forgot the predicate
  (accident b). That is a defect, and not in this library; the MRR does not need it.
- **Merge** of ICEWS14 ends with one predicate more: the paper's code overshoots by one. **Split
  by count**: the paper's code takes, where nothing begins, the number of the timestamp before;
  here it is the rule of the text.
- What does not explain anything: negatives of its own for each positive, repeated rows, twice the
  epochs, smaller batches (at most .008 each); the printed margin of 1 takes vanilla too far, and
  years instead of buckets take split further away on Wikidata12k.
"""
_GRID = """
## Data hyperparameters

`splime reproduce grid --figures DIR`. The paper's values of grow, shrink and epsilon by proximity,
chosen on valid, which the paper does not say it did. For merge, and for change points on the two
sets of years, that is the paper's choice; where it is not, the paper's is as good on test within
.02. Four of its settings cannot be reached by its own rule of splitting (Wikidata12k time 25 and
30, count 30; YAGO11k time 30): no predicate can be split any more.
"""
_GRID_PICTURES = """
![MRR by the number of predicates, Wikidata12k](../experiments/figures/grid-wikidata12k.png)

![MRR by the number of predicates, YAGO11k](../experiments/figures/grid-yago11k.png)

![MRR by the number of predicates, ICEWS14](../experiments/figures/grid-icews14.png)
"""
_PREDICATES = """
## Predicates

`splime reproduce predicates`. Preset `paper`, cuts fitted on all splits, seed 0.
"""
_TSNE = """
## t-SNE

`splime reproduce tsne --run --figures DIR` trains the two runs and draws the paper's three
figures. The paper sets P54 after merging beside P551 after random cuts, and concludes that
merging is what makes the path smooth. With numbers: P54 is nearly as smooth after random cuts,
and all predicates together are as smooth; the difference is one between predicates.
"""
_PICTURES = """
![All predicates after merging](../experiments/figures/tsne-predicates.png)

![P54 after merging](../experiments/figures/tsne-P54-merge.png)

![P551 after random cuts](../experiments/figures/tsne-P551-random.png)
"""
_FAIR = """
## Fair: protocol `fact`, and stronger models

`splime reproduce fair`. The paper's future work. Every fact of test asks two questions, cuts and
buckets come from train, all entities are candidates, ties get the mean rank (see
[evaluation](evaluation.md)). Methods have the paper's parameters. Models have their strong preset,
in which each fact counts once in an epoch, with at most 300 epochs for TransE and RotatE and 200
for SimplE and ComplEx; the best epoch is chosen on valid.

Time is worth less to TransE under this protocol than in the main table, where long facts count
once for every piece that they are cut into. On ICEWS14 the two distances, trained well, do no
better with time than without; the two products gain .06. On Wikidata12k all four gain, .05 to .07.
On YAGO11k nobody gains more than .011: none of its triples comes twice, and 45 % of the ends are
unknown.

The strongest: ComplEx on timestamps with the smoothness penalty. Two things made it so: each fact
counts once (a fact that is cut into fifty pieces would count fifty times otherwise), and facts
whose end is unknown hold at the time that is known of them, not at all times since (`--first end
--last begin`). What was tried is in [the results](../experiments/results/fair.json); valid chose
among the first seeds. The chosen one of YAGO11k as a run of one's own (a minute on the GPU):

```sh
splime train yago11k --end-before-begin repair --bucket-on train --first end --last begin \\
      --method timestamp --model complex --dimension 1000 --n3 0.2 --smooth 0.01 --each fact \\
      --epochs 320 --validate-every 40 --patience 1 --out runs/strongest
splime evaluate runs/strongest
```
"""
