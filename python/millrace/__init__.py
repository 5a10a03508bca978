"""Millrace in Python: `millrace.coco` evaluates detections, `millrace.data` makes batches to train
on, `millrace.serving` takes batches from data servers, `millrace.pictures` draws objects,
`millrace.study` and `millrace.diff` compare runs, `millrace.migrate` reads recipes of other code
bases. Each is imported by its own name."""
