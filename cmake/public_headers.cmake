# The public headers. A plug-in may include these as <millrace/...>, in the build and in an
# installation; all other headers may change with any commit. Their declarations are the plug-in ABI
# (cmake/build_id.cmake). docs/plugins.md describes each of them.
set(public_headers
  millrace/base/config.h
  millrace/base/errors.h
  millrace/base/options.h
  millrace/base/random.h
  millrace/base/registry.h
  millrace/dataflow/engine/dataflow.h
  millrace/dataflow/engine/message.h
  millrace/dataflow/engine/pipeline.h
  millrace/dataflow/engine/plan.h
  millrace/dataflow/engine/source.h
  millrace/dataflow/engine/stage.h
  millrace/coco/data/annotations.h
  millrace/coco/data/detections.h
  millrace/coco/evaluation/evaluate.h
  millrace/coco/masks/masks.h
  millrace/dataflow/detection/detection_stages.h
  millrace/dataflow/detection/sample.h
  millrace/dataflow/detection/transforms.h
  millrace/dataflow/image/lazy_image.h
  millrace/dataflow/sources/detection_sources.h
  millrace/models/onnx/detection.h
  millrace/models/onnx/graph.h
  millrace/models/onnx/operations.h
  millrace/models/weights/parameters.h
  millrace/models/weights/safetensors.h
  millrace/trainer/appended_file.h
  millrace/trainer/callback.h
  millrace/trainer/callback_roles.h
  millrace/trainer/cluster/cluster.h
  millrace/models/detector/detected_object.h
  millrace/models/detector/detector.h
  millrace/trainer/checkpoint/position.h
  millrace/trainer/metrics.h
  millrace/trainer/optimizer/hyper_parameters.h
  millrace/trainer/train_state.h
  millrace/callbacks/set_parameter.h
  millrace/models/backbones/maps.h
  millrace/models/backbones/pyramid_options.h
  millrace/models/backbones/resnet.h
  millrace/models/layers/cells.h
  millrace/models/layers/layers.h
  millrace/models/layers/losses.h
  millrace/models/layers/objects.h
  millrace/models/layers/pixels.h
  millrace/models/layers/results.h
  millrace/models/ops/box_formats.h
  millrace/models/ops/boxes.h
  millrace/models/ops/focal_loss.h
  millrace/models/ops/nms.h
  millrace/models/pyramid_detector.h
  millrace/models/training_checks.h
  millrace/plugins/plugin.h
)

# Headers of the component predict, in addition to the headers above that they include.
# millrace_predict.h is installed beside the folder millrace/.
set(predict_headers
  millrace/models/predict/predictor.h
)
