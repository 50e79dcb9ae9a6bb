"""TF_CONFIG: which clusters are trained on, and what is said of those that cannot be."""

import json
from typing import Any

import pytest

import towermigrate.helpers as tm
from towermigrate.helpers import strategy as strategy_module
from towermigrate.helpers.cluster import Cluster, cluster_from_environment

A, B, C = "10.0.0.1:2222", "10.0.0.2:2222", "10.0.0.3:2222"
WORKER_0 = {"type": "worker", "index": 0}


def config(cluster: Any, task: Any = None) -> str:
    return json.dumps({"cluster": cluster, **({"task": task} if task else {})})


@pytest.mark.parametrize(
    ("tf_config", "expected"),
    [
        pytest.param("", None, id="empty"),
        pytest.param("{}", None, id="an empty object"),
        pytest.param(config({}), None, id="an empty cluster"),
        pytest.param(config({"worker": [A]}, WORKER_0), None, id="one worker trains alone"),
        pytest.param(
            config({"chief": [A], "evaluator": [B]}, {"type": "chief", "index": 0}),
            None,
            id="a chief with an evaluator trains alone",
        ),
        pytest.param(config({"worker": [A, B]}, WORKER_0), Cluster(2, "worker", 0), id="workers"),
        pytest.param(
            config({"chief": [A], "worker": [B, C]}, {"type": "worker", "index": "1"}),
            Cluster(3, "worker", 1),
            id="a chief is one of those who train; an index as text",
        ),
        pytest.param(
            config({"worker": [A, B]}, {"type": "evaluator", "index": 0}),
            Cluster(2, "evaluator", 0),
            id="an evaluator that the cluster does not list",
        ),
    ],
)
def test_clusters(tf_config: str, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config)
    assert cluster_from_environment() == expected


@pytest.mark.parametrize(
    ("tf_config", "says"),
    [
        pytest.param("{'cluster': {}}", "is not JSON .*line 1 column 2", id="not JSON"),
        pytest.param("[]", "is no object with a cluster", id="a list"),
        pytest.param(config([A, B]), "is no object with a cluster", id="a cluster that is a list"),
        pytest.param(
            config({"ps": [A], "worker": [B, C]}, WORKER_0),
            r"names parameter servers \(ps\), but towers share their variables by all-reduce",
            id="parameter servers",
        ),
        pytest.param(
            config({"master": [A], "worker": [B]}, WORKER_0),
            "has a job 'master' that is none of chief, worker, evaluator",
            id="TF1's master",
        ),
        pytest.param(
            config({"worker": "10.0.0.1:2222"}, WORKER_0),
            'gives worker .10.0.0.1:2222. instead of a list of "host:port"',
            id="no list",
        ),
        pytest.param(
            config({"worker": [A, "10.0.0.2"]}, WORKER_0),
            "gives worker .* instead of a list",
            id="no port",
        ),
        pytest.param(
            config({"chief": [A, B]}, {"type": "chief", "index": 0}),
            "names 2 chiefs; there is at most one",
            id="two chiefs",
        ),
        pytest.param(
            config({"worker": [A, B]}), "does not say which task this process is", id="no task"
        ),
        pytest.param(
            config({"worker": [A, B]}, {"type": "worker"}), "does not say which task", id="no index"
        ),
        pytest.param(
            config({"worker": [A, B]}, {"type": "chief", "index": 0}),
            "says this process is a 'chief', but the cluster has worker",
            id="a role that the cluster has not",
        ),
        pytest.param(
            config({"worker": [A, B]}, {"type": "worker", "index": 2}),
            "says this process is worker 2, but workers 0 to 1 are there",
            id="an index too high",
        ),
        pytest.param(
            config({"worker": [A, B]}, {"type": "worker", "index": -1}),
            "says this process is worker -1",
            id="an index below zero",
        ),
    ],
)
def test_what_tf_config_cannot_be(
    tf_config: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config)
    with pytest.raises(ValueError, match=f"^TF_CONFIG {says}.*Expected .*host:port"):
        tm.tower_strategy(2)


def test_an_evaluator_is_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    task = {"type": "evaluator", "index": 0}
    monkeypatch.setenv("TF_CONFIG", config({"chief": [A], "worker": [B]}, task))
    strategy = tm.tower_strategy(3)
    assert strategy.num_replicas_in_sync == 3
    assert not strategy_module.is_multi_worker(strategy)
    assert strategy_module.is_chief(strategy)


def test_devices_win_over_a_cluster_and_say_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(strategy_module, "_said", set())
    monkeypatch.setenv("TF_CONFIG", config({"worker": [A, B]}, WORKER_0))
    for _ in range(2):
        assert tm.tower_strategy(2, "cpu:2").num_replicas_in_sync == 2
    assert [one.getMessage() for one in caplog.records if one.name == "towermigrate"] == [
        "towermigrate: TF_CONFIG names 2 training processes, but because of devices='cpu:2' this "
        "one trains alone"
    ]


def test_devices_win_over_a_tf_config_that_is_of_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", config({"ps": [A], "worker": [B, C]}, WORKER_0))
    assert tm.tower_strategy(2, "cpu:2").num_replicas_in_sync == 2
