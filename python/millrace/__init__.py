"""Millrace in Python: `millrace.coco` evaluates detections, `millrace.data` provides training
batches, `millrace.serving` reads batches from data servers, `millrace.pictures` draws objects,
`millrace.study` and `millrace.diff` compare runs, `millrace.migrate` reads recipes of other code
bases. Import each by its own name."""
