"""Millrace in Python: `millrace.coco` evaluates detections, `millrace.data` makes batches to train
on, `millrace.serving` takes batches from data servers, `millrace.pictures` draws objects. Each is
imported by its own name."""
