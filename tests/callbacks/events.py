"""Reads a folder of event files with TensorBoard's own reader and prints the contents as JSON."""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "images": 0, "histograms": 0})
folder.Reload()
tags = folder.Tags()
print(json.dumps({
    "scalars": {tag: [[e.step, e.value] for e in folder.Scalars(tag)] for tag in tags["scalars"]},
    "images": {tag: [[e.step, e.width, e.height, len(e.encoded_image_string)]
                     for e in folder.Images(tag)]
               for tag in tags["images"]},
    "histograms": {tag: [[e.step, e.histogram_value.num, e.histogram_value.min,
                          e.histogram_value.max,
                          sum(e.histogram_value.bucket), len(e.histogram_value.bucket_limit)]
                         for e in folder.Histograms(tag)] for tag in tags["histograms"]},
}))
