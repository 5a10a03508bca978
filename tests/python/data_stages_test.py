"""Python functions as stages of a flow."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import SMALL, digests

from millrace.data import DataError, Flow, Sample

REST = ["flip", "resize_shortest_edge", "group_by_aspect_ratio", "pad"]


def flow_with(sample: str, function: Callable[[Sample], Any], **options: Any) -> Flow:
    stages = ["read", "decode", function, *REST]
    return Flow(root=sample, **{**SMALL, **options}, stages=stages)


def jitter(sample: Sample) -> Sample:
    light = sample.random.integers(-20, 20)
    sample.image[...] = np.clip(sample.image.astype(np.int16) + light, 0, 255)
    return sample


def test_identity_function_changes_no_byte(sample: str) -> None:
    """Compares with another function stage, since an additional stage changes later random
    draws."""

    def touch(sample: Sample) -> Sample:
        sample.image, sample.boxes = sample.image, sample.boxes
        sample.labels, sample.crowd = sample.labels, sample.crowd
        sample.segmentations, sample.scale = sample.segmentations, sample.scale
        return sample

    same = flow_with(sample, lambda sample: True)
    assert digests(flow_with(sample, touch), 8) == digests(same, 8)


def test_draws_depend_only_on_seed(sample: str) -> None:
    expected = digests(flow_with(sample, jitter, threads=1), 10)
    flow = flow_with(sample, jitter, threads=3)
    assert digests(flow, 6) == expected[:6]
    other = flow_with(sample, jitter)
    other.load_state_dict(flow.state_dict())
    assert digests(other, 4) == expected[6:]
    with pytest.raises(ValueError, match="data.stages is .*jitter"):
        flow_with(sample, lambda sample: True).load_state_dict(flow.state_dict())


def test_keeps_fields_set_by_function(sample: str) -> None:
    def crop(sample: Sample) -> Sample:
        sample.image = sample.image[:50, 60:10:-1]
        sample.boxes = [[1, 2, 30, 40], [5, 5, 50, 50]]
        sample.labels = [1, 0]
        sample.crowd = [False, True]
        sample.segmentations = [[[1, 2, 30, 2, 30, 40]], {"size": [50, 50], "counts": [7, 2493]}]
        return sample

    flow = Flow(root=sample, batch_size=2, stages=["read", "decode", crop, REST[2], REST[3]])
    batch = flow.next()
    assert [list(size) for size in batch.sizes] == [[50, 50]] * 2
    assert batch.boxes[0].tolist() == [[1, 2, 30, 40], [5, 5, 50, 50]]
    assert batch.labels[0].tolist() == [1, 0] and batch.crowd[0].tolist() == [False, True]
    assert batch.segmentations[1][1]["counts"].tolist() == [7, 2493]
    assert batch.bitmaps(0)[1].sum() == 2493


def test_function_filters_samples(sample: str) -> None:
    stages = ["read", lambda sample: sample.image_id % 3 > 0, "decode", *REST]
    flow = Flow(root=sample, **SMALL, stages=stages)
    for _ in range(8):
        assert all(i % 3 for i in flow.next().image_ids)
    assert flow.report()["filtered"] > 0


def fails(sample: Sample) -> Sample:
    raise KeyError("no such thing")


def returns_nothing(sample: Sample) -> None:
    pass


def returns_a_number(sample: Sample) -> int:
    return 3


def three_columns(sample: Sample) -> Sample:
    sample.boxes = sample.boxes[:, :3]
    return sample


def far_boxes(sample: Sample) -> Sample:
    sample.boxes[...] += 5000
    return sample


def fewer_labels(sample: Sample) -> Sample:
    sample.labels = np.zeros(40, np.int32)
    return sample


def float_labels(sample: Sample) -> Sample:
    sample.labels = np.zeros(len(sample.labels)) + 0.5
    return sample


def float_image(sample: Sample) -> Sample:
    sample.image = sample.image / 255
    return sample


def bad_mask(sample: Sample) -> Sample:
    sample.segmentations = [{"size": (3, 3), "counts": [1, 2]}] * len(sample.labels)
    return sample


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (fails, r"KeyError: 'no such thing' \(.*data_stages_test.py:\d+\)"),
        (returns_nothing, "returned None;"),
        (returns_a_number, "class int"),
        (three_columns, r"boxes .*\(\d+, 3\)"),
        (far_boxes, "has the box"),
        (fewer_labels, "classes, "),
        (float_labels, "labels: .*Cannot cast"),
        (float_image, r"\(height, width, 3\) of uint8"),
        (bad_mask, "3 pixels.*3 x 3"),
    ],
)
def test_errors_name_function_and_sample(
    sample: str, function: Callable[[Sample], Any], why: str
) -> None:
    flow = flow_with(sample, function)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=why) as told:
            flow.next()
        assert f"data_stages_test.{function.__name__}" in str(told.value)
        assert "train2017/" in str(told.value)
    if function is fails:
        assert isinstance(told.value.__cause__, KeyError)


def test_function_rejects_image(sample: str) -> None:
    def refuses(sample: Sample) -> Sample:
        if sample.image_id % 5 == 0:
            raise DataError("out of focus")
        return sample

    flow = flow_with(sample, refuses, max_skipped=0.5)
    for _ in range(8):
        assert all(i % 5 for i in flow.next().image_ids)
    assert "out of focus" in flow.report()["skipped_reasons"][0]
    flow = flow_with(sample, refuses, on_error="fail")
    with pytest.raises(DataError, match="out of focus"):
        while True:
            flow.next()


def test_sample_is_valid_during_call(sample: str) -> None:
    kept: list[Any] = []

    def keep(sample: Sample) -> Sample:
        kept.append((sample, sample.image))
        return sample

    flow = flow_with(sample, keep, threads=1)
    expected = digests(flow_with(sample, lambda sample: True), 6)
    seen = []
    for _ in expected:
        for _, image in kept:
            image[...] = 0  # a view kept after the call is a copy
        seen.append(flow.next().digest())
    assert seen == expected
    with pytest.raises(RuntimeError, match="already returned"):
        kept[0][0].boxes


def test_collects_flow_in_reference_cycle(sample: str) -> None:
    class Trainer:
        def __init__(self) -> None:
            self.flow = flow_with(sample, self.see)

        def see(self, sample: Sample) -> Sample:
            return sample

    trainer = Trainer()
    images = trainer.flow.next().images
    gone = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert gone() is None and images.any()


def test_file_cannot_declare_function(sample: str) -> None:
    stages = ["read", "decode", {"type": "python", "function": "f"}, *REST]
    with pytest.raises(ValueError, match='"python"'):
        Flow(root=sample, **SMALL, stages=stages).next()
