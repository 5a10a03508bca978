"""Millrace in Python: `millrace.coco` evaluates detections, `millrace.data` provides training
batches, `millrace.serving` reads batches from data servers, `millrace.pictures` draws objects,
`millrace.study` and `millrace.diff` compare runs, `millrace.migrate` reads other code bases'
recipes. Import each module by its own name."""
