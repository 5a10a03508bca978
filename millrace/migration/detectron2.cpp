// Recipes of detectron2 (https://github.com/facebookresearch/detectron2), version 2 of its keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/migration/anchors_of.h"
#include "millrace/migration/foreign_config.h"
#include "millrace/migration/import_config.h"
#include "millrace/migration/python_literals.h"

namespace millrace {
namespace {

/// Its keys and their values where a recipe does not set them. Those that only its other models
/// read are listed in kOthers.
constexpr std::string_view kDefaults = R"(
VERSION = 2
OUTPUT_DIR = "./output"
SEED = -1
CUDNN_BENCHMARK = False
FLOAT32_PRECISION = ""
VIS_PERIOD = 0
INPUT.MIN_SIZE_TRAIN = (800,)
INPUT.MIN_SIZE_TRAIN_SAMPLING = "choice"
INPUT.MAX_SIZE_TRAIN = 1333
INPUT.MIN_SIZE_TEST = 800
INPUT.MAX_SIZE_TEST = 1333
INPUT.RANDOM_FLIP = "horizontal"
INPUT.CROP.ENABLED = False
INPUT.CROP.TYPE = "relative_range"
INPUT.CROP.SIZE = [0.9, 0.9]
INPUT.FORMAT = "BGR"
INPUT.MASK_FORMAT = "polygon"
DATASETS.TRAIN = ()
DATASETS.TEST = ()
DATASETS.PROPOSAL_FILES_TRAIN = ()
DATASETS.PROPOSAL_FILES_TEST = ()
DATASETS.PRECOMPUTED_PROPOSAL_TOPK_TRAIN = 2000
DATASETS.PRECOMPUTED_PROPOSAL_TOPK_TEST = 1000
DATALOADER.NUM_WORKERS = 4
DATALOADER.ASPECT_RATIO_GROUPING = True
DATALOADER.SAMPLER_TRAIN = "TrainingSampler"
DATALOADER.REPEAT_THRESHOLD = 0.0
DATALOADER.REPEAT_SQRT = True
DATALOADER.RANDOM_SUBSET_RATIO = 1.0
DATALOADER.FILTER_EMPTY_ANNOTATIONS = True
MODEL.META_ARCHITECTURE = "GeneralizedRCNN"
MODEL.DEVICE = "cuda"
MODEL.LOAD_PROPOSALS = False
MODEL.MASK_ON = False
MODEL.KEYPOINT_ON = False
MODEL.WEIGHTS = ""
MODEL.PIXEL_MEAN = [103.53, 116.28, 123.675]
MODEL.PIXEL_STD = [1.0, 1.0, 1.0]
MODEL.BACKBONE.NAME = "build_resnet_backbone"
MODEL.BACKBONE.FREEZE_AT = 2
MODEL.FPN.IN_FEATURES = []
MODEL.FPN.OUT_CHANNELS = 256
MODEL.FPN.NORM = ""
MODEL.FPN.FUSE_TYPE = "sum"
MODEL.PROPOSAL_GENERATOR.NAME = "RPN"
MODEL.PROPOSAL_GENERATOR.MIN_SIZE = 0
MODEL.ANCHOR_GENERATOR.NAME = "DefaultAnchorGenerator"
MODEL.ANCHOR_GENERATOR.SIZES = [[32, 64, 128, 256, 512]]
MODEL.ANCHOR_GENERATOR.ASPECT_RATIOS = [[0.5, 1.0, 2.0]]
MODEL.ANCHOR_GENERATOR.ANGLES = [[-90, 0, 90]]
MODEL.ANCHOR_GENERATOR.OFFSET = 0.0
MODEL.RPN.HEAD_NAME = "StandardRPNHead"
MODEL.RPN.IN_FEATURES = ["res4"]
MODEL.RPN.BOUNDARY_THRESH = -1
MODEL.RPN.IOU_THRESHOLDS = [0.3, 0.7]
MODEL.RPN.IOU_LABELS = [0, -1, 1]
MODEL.RPN.BATCH_SIZE_PER_IMAGE = 256
MODEL.RPN.POSITIVE_FRACTION = 0.5
MODEL.RPN.BBOX_REG_LOSS_TYPE = "smooth_l1"
MODEL.RPN.BBOX_REG_LOSS_WEIGHT = 1.0
MODEL.RPN.BBOX_REG_WEIGHTS = (1.0, 1.0, 1.0, 1.0)
MODEL.RPN.SMOOTH_L1_BETA = 0.0
MODEL.RPN.LOSS_WEIGHT = 1.0
MODEL.RPN.PRE_NMS_TOPK_TRAIN = 12000
MODEL.RPN.PRE_NMS_TOPK_TEST = 6000
MODEL.RPN.POST_NMS_TOPK_TRAIN = 2000
MODEL.RPN.POST_NMS_TOPK_TEST = 1000
MODEL.RPN.NMS_THRESH = 0.7
MODEL.RPN.CONV_DIMS = [-1]
MODEL.ROI_HEADS.NAME = "Res5ROIHeads"
MODEL.ROI_HEADS.NUM_CLASSES = 80
MODEL.ROI_HEADS.IN_FEATURES = ["res4"]
MODEL.ROI_HEADS.IOU_THRESHOLDS = [0.5]
MODEL.ROI_HEADS.IOU_LABELS = [0, 1]
MODEL.ROI_HEADS.BATCH_SIZE_PER_IMAGE = 512
MODEL.ROI_HEADS.POSITIVE_FRACTION = 0.25
MODEL.ROI_HEADS.SCORE_THRESH_TEST = 0.05
MODEL.ROI_HEADS.NMS_THRESH_TEST = 0.5
MODEL.ROI_HEADS.PROPOSAL_APPEND_GT = True
MODEL.ROI_BOX_HEAD.NAME = ""
MODEL.ROI_BOX_HEAD.BBOX_REG_LOSS_TYPE = "smooth_l1"
MODEL.ROI_BOX_HEAD.BBOX_REG_LOSS_WEIGHT = 1.0
MODEL.ROI_BOX_HEAD.BBOX_REG_WEIGHTS = (10.0, 10.0, 5.0, 5.0)
MODEL.ROI_BOX_HEAD.SMOOTH_L1_BETA = 0.0
MODEL.ROI_BOX_HEAD.POOLER_RESOLUTION = 14
MODEL.ROI_BOX_HEAD.POOLER_SAMPLING_RATIO = 0
MODEL.ROI_BOX_HEAD.POOLER_TYPE = "ROIAlignV2"
MODEL.ROI_BOX_HEAD.NUM_FC = 0
MODEL.ROI_BOX_HEAD.FC_DIM = 1024
MODEL.ROI_BOX_HEAD.NUM_CONV = 0
MODEL.ROI_BOX_HEAD.CONV_DIM = 256
MODEL.ROI_BOX_HEAD.NORM = ""
MODEL.ROI_BOX_HEAD.CLS_AGNOSTIC_BBOX_REG = False
MODEL.ROI_BOX_HEAD.TRAIN_ON_PRED_BOXES = False
MODEL.ROI_BOX_HEAD.USE_FED_LOSS = False
MODEL.ROI_BOX_HEAD.USE_SIGMOID_CE = False
MODEL.ROI_BOX_CASCADE_HEAD.BBOX_REG_WEIGHTS = ((10, 10, 5, 5), (20, 20, 10, 10), (30, 30, 15, 15))
MODEL.ROI_BOX_CASCADE_HEAD.IOUS = (0.5, 0.6, 0.7)
MODEL.ROI_MASK_HEAD.NAME = "MaskRCNNConvUpsampleHead"
MODEL.ROI_MASK_HEAD.POOLER_RESOLUTION = 14
MODEL.ROI_MASK_HEAD.POOLER_SAMPLING_RATIO = 0
MODEL.ROI_MASK_HEAD.POOLER_TYPE = "ROIAlignV2"
MODEL.ROI_MASK_HEAD.NUM_CONV = 0
MODEL.ROI_MASK_HEAD.CONV_DIM = 256
MODEL.ROI_MASK_HEAD.NORM = ""
MODEL.ROI_MASK_HEAD.CLS_AGNOSTIC_MASK = False
MODEL.RETINANET.NUM_CLASSES = 80
MODEL.RETINANET.IN_FEATURES = ["p3", "p4", "p5", "p6", "p7"]
MODEL.RETINANET.NUM_CONVS = 4
MODEL.RETINANET.IOU_THRESHOLDS = [0.4, 0.5]
MODEL.RETINANET.IOU_LABELS = [0, -1, 1]
MODEL.RETINANET.PRIOR_PROB = 0.01
MODEL.RETINANET.SCORE_THRESH_TEST = 0.05
MODEL.RETINANET.TOPK_CANDIDATES_TEST = 1000
MODEL.RETINANET.NMS_THRESH_TEST = 0.5
MODEL.RETINANET.BBOX_REG_WEIGHTS = (1.0, 1.0, 1.0, 1.0)
MODEL.RETINANET.FOCAL_LOSS_GAMMA = 2.0
MODEL.RETINANET.FOCAL_LOSS_ALPHA = 0.25
MODEL.RETINANET.SMOOTH_L1_LOSS_BETA = 0.1
MODEL.RETINANET.BBOX_REG_LOSS_TYPE = "smooth_l1"
MODEL.RETINANET.NORM = ""
MODEL.RESNETS.DEPTH = 50
MODEL.RESNETS.OUT_FEATURES = ["res4"]
MODEL.RESNETS.NUM_GROUPS = 1
MODEL.RESNETS.NORM = "FrozenBN"
MODEL.RESNETS.WIDTH_PER_GROUP = 64
MODEL.RESNETS.STRIDE_IN_1X1 = True
MODEL.RESNETS.RES5_DILATION = 1
MODEL.RESNETS.RES2_OUT_CHANNELS = 256
MODEL.RESNETS.STEM_OUT_CHANNELS = 64
MODEL.RESNETS.DEFORM_ON_PER_STAGE = [False, False, False, False]
MODEL.RESNETS.DEFORM_MODULATED = False
MODEL.RESNETS.DEFORM_NUM_GROUPS = 1
SOLVER.LR_SCHEDULER_NAME = "WarmupMultiStepLR"
SOLVER.MAX_ITER = 40000
SOLVER.BASE_LR = 0.001
SOLVER.BASE_LR_END = 0.0
SOLVER.MOMENTUM = 0.9
SOLVER.NESTEROV = False
SOLVER.WEIGHT_DECAY = 0.0001
SOLVER.WEIGHT_DECAY_NORM = 0.0
SOLVER.WEIGHT_DECAY_BIAS = None
SOLVER.GAMMA = 0.1
SOLVER.STEPS = (30000,)
SOLVER.NUM_DECAYS = 3
SOLVER.WARMUP_FACTOR = 0.001
SOLVER.WARMUP_ITERS = 1000
SOLVER.WARMUP_METHOD = "linear"
SOLVER.RESCALE_INTERVAL = False
SOLVER.CHECKPOINT_PERIOD = 5000
SOLVER.IMS_PER_BATCH = 16
SOLVER.REFERENCE_WORLD_SIZE = 0
SOLVER.BIAS_LR_FACTOR = 1.0
SOLVER.CLIP_GRADIENTS.ENABLED = False
SOLVER.CLIP_GRADIENTS.CLIP_TYPE = "value"
SOLVER.CLIP_GRADIENTS.CLIP_VALUE = 1.0
SOLVER.CLIP_GRADIENTS.NORM_TYPE = 2.0
SOLVER.AMP.ENABLED = False
TEST.EXPECTED_RESULTS = []
TEST.EVAL_PERIOD = 0
TEST.DETECTIONS_PER_IMAGE = 100
TEST.AUG.ENABLED = False
TEST.AUG.MIN_SIZES = (400, 500, 600, 700, 800, 900, 1000, 1100, 1200)
TEST.AUG.MAX_SIZE = 4000
TEST.AUG.FLIP = True
TEST.PRECISE_BN.ENABLED = False
TEST.PRECISE_BN.NUM_ITER = 200
)";

/// Keys that its other models read: without an effect on those that we have.
struct Other {
  const char* path;
  const char* reason;
};
constexpr Other kOthers[] = {
    {"MODEL.ROI_KEYPOINT_HEAD", "keypoints: no detector here finds them"},
    {"MODEL.SEM_SEG_HEAD", "semantic segmentation: no detector here does it"},
    {"MODEL.PANOPTIC_FPN", "panoptic segmentation: no detector here does it"},
    {"TEST.KEYPOINT_OKS_SIGMAS", "keypoints: no detector here finds them"},
    {"GLOBAL", "read by nothing in detectron2"},
};

const Place kDefaultPlace{"detectron2's default", 0};

Value default_tree() {
  Value tree{Value::Dict{}, kDefaultPlace};
  read_assignments(kDefaults, kDefaultPlace.source, {}, [&](Assignment one) {
    std::string path;
    for (const auto& part : one.target)
      path += (path.empty() ? "" : ".") + std::get<std::string>(part.data);
    one.value.place = kDefaultPlace;
    set_at_path(tree, path, std::move(one.value));
  });
  return tree;
}

/// The rules: what each of its keys is here.
class Rules {
 public:
  Rules(const Value& recipe, const Value& whole, const ImportOptions& options)
      : recipe_(recipe), options_(options), t_(whole) {}

  ImportedConfig all() {
    t_.expect("VERSION", lit(2), "keys of another version: convert the file in detectron2 first");
    read_model();
    read_input();
    read_data();
    read_solver();
    read_run();
    note_rest();
    return {"detectron2", std::move(t_.ours()), kept_notes()};
  }

 private:
  static Value lit(Value::Data data) { return {std::move(data), {}}; }
  static Value ones() { return lit(Value::List(4, lit(1.0))); }

  /// Another value than these makes another model than ours: an error.
  std::string must(const std::string& theirs, const std::vector<std::string>& possible) {
    const auto found = t_.read(theirs);
    const auto* text = std::get_if<std::string>(&found.need().data);
    const auto given = text ? *text : found.need().text();
    if (!std::ranges::count(possible, given))
      found.fail(fmt::format("no model here is made so; what can be imported: {}",
                             joined(possible, ", ")));
    return given;
  }

  // ---- The model

  void read_model() {
    const auto architecture = must("MODEL.META_ARCHITECTURE", {"GeneralizedRCNN", "RetinaNet"});
    must("MODEL.KEYPOINT_ON", {"False"});
    must("MODEL.LOAD_PROPOSALS", {"False"});
    must("MODEL.ANCHOR_GENERATOR.NAME", {"DefaultAnchorGenerator"});
    if (architecture == "RetinaNet")
      read_retinanet();
    else
      read_rcnn();
    read_resnet();
    read_fpn();
    t_.copy("TEST.DETECTIONS_PER_IMAGE", "model.test.detections_per_img");
    read_weights();
    read_test_augmentation();
  }

  void read_resnet() {
    const auto depth = must("MODEL.RESNETS.DEPTH", {"18", "34", "50", "101"});
    t_.put("model.backbone.type", Config::Data("resnet" + depth), t_.read("MODEL.RESNETS.DEPTH"));
    if (depth == "50" || depth == "101") {
      t_.copy("MODEL.RESNETS.NUM_GROUPS", "model.backbone.groups");
      t_.copy("MODEL.RESNETS.WIDTH_PER_GROUP", "model.backbone.width_per_group");
    } else {
      must("MODEL.RESNETS.NUM_GROUPS", {"1"});
      t_.read("MODEL.RESNETS.WIDTH_PER_GROUP");  // basic blocks have no groups
    }
    must("MODEL.RESNETS.RES5_DILATION", {"1"});
    must("MODEL.RESNETS.RES2_OUT_CHANNELS", {depth == "18" || depth == "34" ? "64" : "256"});
    must("MODEL.RESNETS.STEM_OUT_CHANNELS", {"64"});
    must("MODEL.RESNETS.DEFORM_ON_PER_STAGE", {"[False, False, False, False]"});
    for (const auto* key : {"DEFORM_MODULATED", "DEFORM_NUM_GROUPS", "OUT_FEATURES"})
      t_.read(std::string("MODEL.RESNETS.") + key);
    norm("MODEL.RESNETS.NORM", "model.backbone.norm");
    t_.copy("MODEL.BACKBONE.FREEZE_AT", "model.backbone.freeze_at");
    if (depth == "50" || depth == "101")
      t_.copy("MODEL.RESNETS.STRIDE_IN_1X1", "model.backbone.stride_in_1x1");
    else
      t_.read("MODEL.RESNETS.STRIDE_IN_1X1");  // basic blocks have no 1x1 to stride in
  }

  void norm(const std::string& theirs, const std::string& ours) {
    const auto found = t_.read(theirs);
    const auto name = found.text();
    const std::pair<const char*, const char*> names[] = {
        {"", "none"},          {"FrozenBN", "frozen_bn"}, {"BN", "bn"},
        {"SyncBN", "sync_bn"}, {"nnSyncBN", "sync_bn"},   {"GN", "gn"}};
    for (const auto& [their_name, our_name] : names)
      if (name == their_name) return t_.put(ours, Config::Data(std::string(our_name)), found);
    found.fail("a norm that is not known here: FrozenBN, BN, SyncBN, GN or none");
  }

  void read_fpn() {
    if (on_c4_) {
      for (const auto* key : {"IN_FEATURES", "OUT_CHANNELS", "NORM", "FUSE_TYPE"})
        t_.read(std::string("MODEL.FPN.") + key);
      return;
    }
    t_.read("MODEL.FPN.IN_FEATURES");
    t_.copy("MODEL.FPN.OUT_CHANNELS", "model.fpn.out_channels");
    norm("MODEL.FPN.NORM", "model.fpn.norm");
    must("MODEL.FPN.FUSE_TYPE", {"sum"});
  }

  void read_anchors() {
    const auto sizes = t_.read("MODEL.ANCHOR_GENERATOR.SIZES");
    if (on_c4_)
      t_.put("model.anchors.sizes", one_list(sizes), sizes);
    else
      put_anchor_sizes(t_, levels_of(sizes), sizes);
    const auto ratios = t_.read("MODEL.ANCHOR_GENERATOR.ASPECT_RATIOS");
    const auto each = lists_of(ratios);
    if (!std::ranges::all_of(each, [&](const auto& one) { return one == each.front(); }))
      ratios.fail("the levels have different ratios, which model.anchors.aspect_ratios cannot say");
    t_.put("model.anchors.aspect_ratios", each.front(), ratios);
    t_.expect("MODEL.ANCHOR_GENERATOR.OFFSET", lit(0.0), "anchors stand at the corners of cells");
    t_.read("MODEL.ANCHOR_GENERATOR.ANGLES");
  }

  static std::vector<std::vector<double>> lists_of(const Found& found) {
    if (!found.need().is_list() || found.need().list().empty()) found.fail("a list is needed");
    std::vector<std::vector<double>> all;
    if (!found.need().list().front().is_list()) return {found.reals()};
    for (const auto& one : found.need().list())
      all.push_back(Found{&one, found.path, one.place}.reals());
    return all;
  }

  static std::vector<double> one_list(const Found& found) {
    const auto all = lists_of(found);
    if (all.size() != 1) found.fail("C4 is one map: one list of sizes is needed");
    return all.front();
  }

  /// Sizes for each of five levels.
  static std::vector<std::vector<double>> levels_of(const Found& found) {
    auto all = lists_of(found);
    if (all.size() == 1) all.assign(5, all.front());
    return all;
  }

  void read_rcnn() {
    on_c4_ = must("MODEL.BACKBONE.NAME", {"build_resnet_fpn_backbone", "build_resnet_backbone"}) ==
             "build_resnet_backbone";
    must("MODEL.PROPOSAL_GENERATOR.NAME", {"RPN"});
    std::string heads;
    if (on_c4_) {
      t_.put("model.backbone.out", Config::Data(std::string("c4")), t_.read("MODEL.BACKBONE.NAME"));
      heads = must("MODEL.ROI_HEADS.NAME", {"Res5ROIHeads"});
      must("MODEL.RPN.IN_FEATURES", {"[\"res4\"]", "['res4']"});
      t_.read("MODEL.ROI_BOX_HEAD.NAME");
    } else {
      heads = must("MODEL.ROI_HEADS.NAME", {"StandardROIHeads", "CascadeROIHeads"});
      must("MODEL.ROI_BOX_HEAD.NAME", {"FastRCNNConvFCHead"});
    }
    const auto masks = t_.read("MODEL.MASK_ON");
    if (heads == "CascadeROIHeads") {
      t_.put("model.type", Config::Data(std::string("cascadercnn")),
             t_.read("MODEL.ROI_HEADS.NAME"));
      t_.put("model.masks", Config::Data(masks.flag()), masks);
    } else {
      t_.put("model.type", Config::Data(std::string(masks.flag() ? "maskrcnn" : "fasterrcnn")),
             masks);
    }
    read_anchors();
    read_rpn();
    read_regions(heads == "CascadeROIHeads");
    read_box_head();
    if (masks.flag()) read_mask_head();
  }

  void read_rpn() {
    const auto iou = t_.read("MODEL.RPN.IOU_THRESHOLDS");
    put_thresholds(iou, "model.rpn");
    t_.expect("MODEL.RPN.IOU_LABELS",
              lit(Value::List{lit(std::int64_t{0}), lit(std::int64_t{-1}), lit(std::int64_t{1})}),
              "anchors are background, ignored, foreground");
    for (const auto& [theirs, ours] : {std::pair{"BOUNDARY_THRESH", "boundary_thresh"},
                                       {"BATCH_SIZE_PER_IMAGE", "batch_size_per_image"},
                                       {"POSITIVE_FRACTION", "positive_fraction"},
                                       {"SMOOTH_L1_BETA", "smooth_l1_beta"},
                                       {"PRE_NMS_TOPK_TRAIN", "pre_nms_top_n_train"},
                                       {"PRE_NMS_TOPK_TEST", "pre_nms_top_n_test"},
                                       {"POST_NMS_TOPK_TRAIN", "post_nms_top_n_train"},
                                       {"POST_NMS_TOPK_TEST", "post_nms_top_n_test"},
                                       {"NMS_THRESH", "nms_thresh"}})
      t_.copy(std::string("MODEL.RPN.") + theirs, std::string("model.rpn.") + ours);
    t_.copy("MODEL.PROPOSAL_GENERATOR.MIN_SIZE", "model.rpn.min_size");
    must("MODEL.RPN.HEAD_NAME", {"StandardRPNHead"});
    must("MODEL.RPN.CONV_DIMS", {"[-1]"});
    t_.read("MODEL.RPN.IN_FEATURES");
    t_.expect("MODEL.RPN.BBOX_REG_LOSS_TYPE", lit(std::string("smooth_l1")),
              "proposals are learned with (smooth) L1 of the deltas");
    t_.expect("MODEL.RPN.BBOX_REG_LOSS_WEIGHT", lit(1.0), kNoWeights);
    t_.expect("MODEL.RPN.LOSS_WEIGHT", lit(1.0), kNoWeights);
    t_.expect("MODEL.RPN.BBOX_REG_WEIGHTS", ones(), "deltas of proposals have the weight 1");
  }

  void put_thresholds(const Found& iou, const std::string& table) {
    const auto both = iou.reals();
    if (both.size() != 2) iou.fail("two thresholds are needed: background, foreground");
    t_.put(table + ".bg_iou_thresh", both[0], iou);
    t_.put(table + ".fg_iou_thresh", both[1], iou);
  }

  void read_regions(bool cascade) {
    const auto first = t_.read("MODEL.ROI_HEADS.IOU_THRESHOLDS");
    if (first.reals().size() != 1)
      first.fail("regions are foreground or background: one threshold");
    if (cascade) {
      const auto iou = t_.read("MODEL.ROI_BOX_CASCADE_HEAD.IOUS");
      if (iou.reals().empty() || iou.reals().front() != first.reals().front())
        first.fail("it differs from the first of MODEL.ROI_BOX_CASCADE_HEAD.IOUS");
      t_.put("model.roi.fg_iou_thresh", iou.reals(), iou);
      const auto weights = t_.read("MODEL.ROI_BOX_CASCADE_HEAD.BBOX_REG_WEIGHTS");
      t_.put("model.box.bbox_reg_weights", weights.reals(), weights);
      t_.read("MODEL.ROI_BOX_HEAD.BBOX_REG_WEIGHTS");
    } else {
      t_.put("model.roi.fg_iou_thresh", first.reals().front(), first);
      const auto weights = t_.read("MODEL.ROI_BOX_HEAD.BBOX_REG_WEIGHTS");
      t_.put("model.box.bbox_reg_weights", weights.reals(), weights);
    }
    t_.expect("MODEL.ROI_HEADS.IOU_LABELS",
              lit(Value::List{lit(std::int64_t{0}), lit(std::int64_t{1})}),
              "regions are background or foreground");
    t_.copy("MODEL.ROI_HEADS.BATCH_SIZE_PER_IMAGE", "model.roi.batch_size_per_image");
    t_.copy("MODEL.ROI_HEADS.POSITIVE_FRACTION", "model.roi.positive_fraction");
    t_.copy("MODEL.ROI_HEADS.SCORE_THRESH_TEST", "model.test.score_thresh");
    t_.copy("MODEL.ROI_HEADS.NMS_THRESH_TEST", "model.test.nms_thresh");
    t_.expect("MODEL.ROI_HEADS.PROPOSAL_APPEND_GT", lit(true),
              "ground truth is always among the regions that are sampled");
    t_.read("MODEL.ROI_HEADS.IN_FEATURES");
    read_classes("MODEL.ROI_HEADS.NUM_CLASSES");
  }

  void read_classes(const std::string& path) {
    t_.expect(path, lit(std::int64_t{80}),
              "the classes are those of the data set; data.classes names some of them");
  }

  /// The layers of a head on a pyramid; on C4 the last stage of the ResNet stands for them.
  void read_box_layers() {
    if (on_c4_) {
      for (const auto* key : {"NUM_CONV", "NUM_FC", "NORM", "CONV_DIM", "FC_DIM"})
        t_.read(std::string("MODEL.ROI_BOX_HEAD.") + key);
      return;
    }
    t_.copy("MODEL.ROI_BOX_HEAD.FC_DIM", "model.box.fc_dim");
    const auto convs = t_.read("MODEL.ROI_BOX_HEAD.NUM_CONV");
    const auto layers = t_.read("MODEL.ROI_BOX_HEAD.NUM_FC");
    const bool plain = convs.integer() == 0 && layers.integer() == 2;
    if (!plain && !(convs.integer() == 4 && layers.integer() == 1))
      layers.fail(
          fmt::format("with NUM_CONV = {}: the box heads here are two layers (\"2fc\"), or four "
                      "convolutions and "
                      "a layer (\"4conv1fc\")",
                      convs.integer()));
    t_.put("model.box.type", Config::Data(std::string(plain ? "2fc" : "4conv1fc")),
           plain ? layers : convs);
    if (plain) {
      t_.read("MODEL.ROI_BOX_HEAD.NORM"), t_.read("MODEL.ROI_BOX_HEAD.CONV_DIM");
    } else {
      norm("MODEL.ROI_BOX_HEAD.NORM", "model.box.norm");
      t_.expect("MODEL.ROI_BOX_HEAD.CONV_DIM", t_.look("MODEL.FPN.OUT_CHANNELS").need(),
                "its convolutions have as many channels as the pyramid");
    }
  }

  void read_box_head() {
    read_box_layers();
    for (const auto& [theirs, ours] : {std::pair{"POOLER_RESOLUTION", "pooler_resolution"},
                                       {"CLS_AGNOSTIC_BBOX_REG", "cls_agnostic_bbox_reg"}})
      t_.copy(std::string("MODEL.ROI_BOX_HEAD.") + theirs, std::string("model.box.") + ours);
    regression_loss("MODEL.ROI_BOX_HEAD.BBOX_REG_LOSS_TYPE", "MODEL.ROI_BOX_HEAD.SMOOTH_L1_BETA",
                    "model.box");
    t_.expect("MODEL.ROI_BOX_HEAD.BBOX_REG_LOSS_WEIGHT", lit(1.0), kNoWeights);
    t_.expect("MODEL.ROI_BOX_HEAD.TRAIN_ON_PRED_BOXES", lit(false),
              "masks learn from the proposals, as by default in detectron2");
    t_.expect("MODEL.ROI_BOX_HEAD.USE_FED_LOSS", lit(false), "classes are learned with softmax");
    t_.expect("MODEL.ROI_BOX_HEAD.USE_SIGMOID_CE", lit(false), "classes are learned with softmax");
    t_.copy("MODEL.ROI_BOX_HEAD.POOLER_SAMPLING_RATIO", "model.roi.sampling_ratio");
    const auto pooler = t_.read("MODEL.ROI_BOX_HEAD.POOLER_TYPE");
    must("MODEL.ROI_BOX_HEAD.POOLER_TYPE", {"ROIAlignV2", "ROIAlign"});
    t_.put("model.roi.aligned", Config::Data(pooler.text() == "ROIAlignV2"), pooler);
  }

  void regression_loss(const std::string& kind, const std::string& beta, const std::string& table) {
    const auto loss = t_.read(kind);
    const auto found_beta = t_.read(beta);
    if (must(kind, {"smooth_l1", "giou"}) == "giou")
      t_.put(table + ".bbox_reg_loss_type", Config::Data(std::string("giou")), loss);
    else
      t_.put(table + ".smooth_l1_beta", found_beta.real(), found_beta);
  }

  void read_mask_head() {
    must("MODEL.ROI_MASK_HEAD.NAME", {"MaskRCNNConvUpsampleHead"});
    // On C4 both heads take the regions of the box head
    const auto* side =
        on_c4_ ? "MODEL.ROI_BOX_HEAD.POOLER_RESOLUTION" : "MODEL.ROI_MASK_HEAD.POOLER_RESOLUTION";
    t_.read("MODEL.ROI_MASK_HEAD.POOLER_RESOLUTION");
    t_.copy(side, "model.mask.pooler_resolution");
    t_.copy("MODEL.ROI_MASK_HEAD.NUM_CONV", "model.mask.num_convs");
    t_.copy("MODEL.ROI_MASK_HEAD.CONV_DIM", "model.mask.conv_dim");
    for (const auto& [mask, box] :
         {std::pair{"MODEL.ROI_MASK_HEAD.NORM", "MODEL.FPN.NORM"},
          {"MODEL.ROI_MASK_HEAD.POOLER_SAMPLING_RATIO", "MODEL.ROI_BOX_HEAD.POOLER_SAMPLING_RATIO"},
          {"MODEL.ROI_MASK_HEAD.POOLER_TYPE", "MODEL.ROI_BOX_HEAD.POOLER_TYPE"}})
      t_.expect(mask, t_.look(box).need(), fmt::format("here the mask head follows {}", box));
    t_.expect("MODEL.ROI_MASK_HEAD.CLS_AGNOSTIC_MASK", lit(false), "each class has a mask");
  }

  void read_retinanet() {
    must("MODEL.BACKBONE.NAME", {"build_retinanet_resnet_fpn_backbone"});
    t_.put("model.type", Config::Data(std::string("retinanet")),
           t_.read("MODEL.META_ARCHITECTURE"));
    t_.read("MODEL.MASK_ON");
    read_anchors();
    put_thresholds(t_.read("MODEL.RETINANET.IOU_THRESHOLDS"), "model.head");
    t_.expect("MODEL.RETINANET.IOU_LABELS",
              lit(Value::List{lit(std::int64_t{0}), lit(std::int64_t{-1}), lit(std::int64_t{1})}),
              "anchors are background, ignored, foreground");
    for (const auto& [theirs, ours] : {std::pair{"NUM_CONVS", "head.num_convs"},
                                       {"PRIOR_PROB", "head.prior_prob"},
                                       {"FOCAL_LOSS_GAMMA", "head.focal_loss_gamma"},
                                       {"FOCAL_LOSS_ALPHA", "head.focal_loss_alpha"},
                                       {"SCORE_THRESH_TEST", "test.score_thresh"},
                                       {"TOPK_CANDIDATES_TEST", "test.topk_candidates"},
                                       {"NMS_THRESH_TEST", "test.nms_thresh"}})
      t_.copy(std::string("MODEL.RETINANET.") + theirs, std::string("model.") + ours);
    regression_loss("MODEL.RETINANET.BBOX_REG_LOSS_TYPE", "MODEL.RETINANET.SMOOTH_L1_LOSS_BETA",
                    "model.head");
    t_.expect("MODEL.RETINANET.BBOX_REG_WEIGHTS", ones(), "deltas of anchors have the weight 1");
    norm("MODEL.RETINANET.NORM", "model.head.norm");
    t_.read("MODEL.RETINANET.IN_FEATURES");
    read_classes("MODEL.RETINANET.NUM_CLASSES");
  }

  void read_weights() {
    const auto found = t_.read("MODEL.WEIGHTS");
    auto name = found.text();
    if (name.empty()) return;
    std::string how;
    if (const auto scheme = name.find("://"); scheme != std::string::npos) {
      how = name;
      if (name.starts_with("detectron2://"))
        how = "https://dl.fbaipublicfiles.com/detectron2/" + name.substr(scheme + 3);
      const bool has_kind =
          name.rfind('.') != std::string::npos && name.rfind('.') > name.rfind('/');
      name = "data/weights/" + name.substr(name.rfind('/') + 1) + (has_kind ? "" : ".pkl");
    }
    t_.put("model.weights", Config::Data(name), found, how);
  }

  void read_test_augmentation() {
    const auto enabled = t_.read("TEST.AUG.ENABLED");
    const auto sizes = t_.read("TEST.AUG.MIN_SIZES");
    const auto most = t_.read("TEST.AUG.MAX_SIZE");
    const auto flip = t_.read("TEST.AUG.FLIP");
    if (!enabled.flag()) return;
    auto all = sizes.reals();
    if (all.empty()) sizes.fail("a size is needed");
    const double largest = std::ranges::max(all);
    for (auto& one : all) one /= largest;
    t_.put("model.test.aug_scales", all, sizes, fmt::format("shares of {}", largest));
    t_.put("model.test.aug_flip", Config::Data(flip.flag()), flip);
    t_.put("data.test_short_side", largest, sizes, "the largest view, as views are made from it");
    t_.put("data.test_max_side", most.real(), most);
    augments_ = true;
  }

  // ---- Pixels and images

  void read_input() {
    const auto order = must("INPUT.FORMAT", {"BGR", "RGB"});
    t_.put("model.pixel_order", Config::Data(std::string(order == "BGR" ? "bgr" : "rgb")),
           t_.read("INPUT.FORMAT"));
    t_.copy("MODEL.PIXEL_MEAN", "model.pixel_mean");
    t_.copy("MODEL.PIXEL_STD", "model.pixel_std");
    t_.copy("INPUT.MIN_SIZE_TRAIN", "data.short_side");
    t_.copy("INPUT.MAX_SIZE_TRAIN", "data.max_side");
    const auto sizes = t_.read("INPUT.MIN_SIZE_TRAIN");
    const auto sampling = t_.read("INPUT.MIN_SIZE_TRAIN_SAMPLING");
    if (must("INPUT.MIN_SIZE_TRAIN_SAMPLING", {"choice", "range"}) == "range")
      t_.put("data.short_side_range", Config::Data(true), sampling);
    const auto test_size = t_.read("INPUT.MIN_SIZE_TEST");
    const auto test_most = t_.read("INPUT.MAX_SIZE_TEST");
    if (test_size.real() == 0)
      t_.leave_out(test_size, "images are always resized when detecting: set data.test_short_side");
    else if (!augments_ && (sizes.reals().size() > 1 || sizes.reals().front() != test_size.real()))
      t_.put("data.test_short_side", test_size.real(), test_size);
    if (!augments_ && test_most.real() != t_.look("INPUT.MAX_SIZE_TRAIN").real())
      t_.put("data.test_max_side", test_most.real(), test_most);
    t_.expect("INPUT.MASK_FORMAT", lit(std::string("polygon")),
              "polygons stay polygons and run lengths stay run lengths");
    read_flip_and_crop();
  }

  void read_flip_and_crop() {
    const auto flip = t_.read("INPUT.RANDOM_FLIP");
    const auto direction = must("INPUT.RANDOM_FLIP", {"horizontal", "vertical", "none"});
    const auto crop = t_.read("INPUT.CROP.ENABLED");
    const auto kind = t_.read("INPUT.CROP.TYPE");
    const auto size = t_.read("INPUT.CROP.SIZE");
    if (direction == "none") t_.put("data.flip", 0.0, flip);
    if (!crop.flag() && direction != "vertical") return;
    Config::Array stages;
    const auto stage = [&](const std::string& type, const Origin& origin) -> Config& {
      Config table(Config::Table{}, origin);
      table.set("type", {type, origin});
      return stages.emplace_back(std::move(table));
    };
    const auto origin = origin_of(crop.flag() ? crop : flip);
    stage("read", origin), stage("decode", origin);
    if (crop.flag()) {
      auto& table = stage("random_crop", origin);
      must("INPUT.CROP.TYPE", {"relative", "relative_range", "absolute", "absolute_range"});
      table.set("crop_type", {kind.text(), origin_of(kind)});
      auto sides = size.reals();
      if (sides.size() != 2) size.fail("two sizes are needed");
      // Theirs are (height, width) but for the range of absolute_range.
      if (kind.text() != "absolute_range") std::swap(sides[0], sides[1]);
      Config::Array both;
      for (const double side : sides) both.push_back({number(side), origin_of(size)});
      table.set("size", {std::move(both), origin_of(size)});
      table.set("keep_object", {false, {"as detectron2's crops", 0, 0}});
    }
    stage("resize_shortest_edge", origin);
    if (direction != "none") {
      auto& table = stage("flip", origin_of(flip));
      if (direction == "vertical")
        table.set("direction", {std::string("vertical"), origin_of(flip)});
    }
    stage("group_by_aspect_ratio", origin), stage("pad", origin);
    t_.put("data.stages", Config::Data(std::move(stages)), crop.flag() ? crop : flip);
  }

  // ---- Data

  void read_data() {
    const auto train = names("DATASETS.TRAIN");
    const auto test = names("DATASETS.TEST");
    const auto filter = t_.read("DATALOADER.FILTER_EMPTY_ANNOTATIONS");
    t_.put("data.filter_empty", Config::Data(filter.flag()), filter);
    t_.copy("DATALOADER.ASPECT_RATIO_GROUPING", "data.aspect_grouping");
    split(train, "train");
    split(test, "val");
    if (train.size() == 1 && *std::get_if<std::string>(&train.front()->data) == "coco_2017_train")
      images_ = filter.flag() ? kCocoTrain2017WithObjects : kCocoTrain2017;
    if (options_.images) images_ = options_.images;
    read_sampler();
    t_.expect("DATALOADER.NUM_WORKERS", lit(std::int64_t{4}),
              "the flow is threads of this process, by default one per core: data.threads");
    t_.expect("DATALOADER.RANDOM_SUBSET_RATIO", lit(1.0),
              "[[data.sources]] type = \"take\" or \"fixed_size\" reads a part of a data set");
    for (const auto* key : {"PROPOSAL_FILES_TRAIN", "PROPOSAL_FILES_TEST",
                            "PRECOMPUTED_PROPOSAL_TOPK_TRAIN", "PRECOMPUTED_PROPOSAL_TOPK_TEST"})
      t_.leave_out_rest(std::string("DATASETS.") + key, "proposals are always made by the model");
  }

  std::vector<const Value*> names(const std::string& path) {
    const auto found = t_.read(path);
    std::vector<const Value*> all;
    if (!found) return all;
    if (!found.need().is_list()) found.fail("a tuple of names is needed: (\"coco_2017_train\",)");
    for (const auto& one : found.need().list()) {
      Found{&one, path, one.place}.text();
      all.push_back(&one);
    }
    return all;
  }

  /// A data set that detectron2 registers itself: its folder and split. Others are made by code.
  void split(const std::vector<const Value*>& all, const std::string& role) {
    const auto path = role == "train" ? "DATASETS.TRAIN" : "DATASETS.TEST";
    const auto found = t_.look(path);
    if (all.empty()) return;
    const auto name = std::get<std::string>(all.front()->data);
    const bool is_known = name.starts_with("coco_20") && name.size() > 10 && name[9] == '_' &&
                          (name.substr(10) == "train" || name.substr(10) == "val");
    if (all.size() > 1)
      return t_.leave_out(found,
                          "several data sets: [[data.sources]], a table each and one with "
                          "type = \"concat\"; data.val takes one");
    if (!is_known)
      return t_.leave_out(found,
                          fmt::format("a name that code registers: set data.root and data.{}, for "
                                      "ROOT/annotations/instances_SPLIT.json and ROOT/SPLIT/",
                                      role));
    if (role == "train")
      t_.put("data.root", Config::Data(std::string("datasets/coco")), found,
             "in $DETECTRON2_DATASETS, by default ./datasets");
    t_.put("data." + role, Config::Data(name.substr(10) + name.substr(5, 4)), found);
  }

  void read_sampler() {
    const auto sampler = t_.read("DATALOADER.SAMPLER_TRAIN");
    const auto threshold = t_.read("DATALOADER.REPEAT_THRESHOLD");
    t_.expect("DATALOADER.REPEAT_SQRT", lit(true), "images repeat by the root of their factor");
    if (sampler.text() == "TrainingSampler") return;
    if (sampler.text() != "RepeatFactorTrainingSampler")
      return t_.leave_out(sampler, "images come in a random order, each once an epoch");
    const auto origin = origin_of(sampler);
    Config coco(Config::Table{}, origin), repeat(Config::Table{}, origin);
    coco.set("type", {std::string("coco"), origin});
    repeat.set("type", {std::string("repeat_factor"), origin});
    repeat.set("of", {Config::Array{{std::string("coco"), origin}}, origin});
    repeat.set("threshold", {number(threshold.real()), origin_of(threshold)});
    t_.put("data.sources", Config::Data(Config::Array{std::move(coco), std::move(repeat)}),
           sampler);
  }

  // ---- The solver

  void read_solver() {
    const auto batch = t_.read("SOLVER.IMS_PER_BATCH");
    const auto world = t_.read("SOLVER.REFERENCE_WORLD_SIZE");
    const auto images = batch.integer();
    std::int64_t gpus = options_.gpus.value_or(std::max<std::int64_t>(1, world.integer()));
    if (images < 1 || images % gpus != 0)
      batch.fail(
          fmt::format("it does not divide into whole images for each of {}; --gpus says for "
                      "how many processes the recipe is meant",
                      counted(gpus, "GPU")));
    t_.put("data.batch_size", static_cast<double>(images / gpus), batch,
           gpus == 1 ? "" : fmt::format("{} / {} processes", images, gpus));
    t_.put("optimizer.lr_batch", static_cast<double>(images), batch);
    t_.copy("SOLVER.BASE_LR", "optimizer.lr");
    t_.copy("SOLVER.MOMENTUM", "optimizer.momentum");
    t_.copy("SOLVER.NESTEROV", "optimizer.nesterov");
    t_.copy("SOLVER.WEIGHT_DECAY", "optimizer.weight_decay");
    t_.copy("SOLVER.WEIGHT_DECAY_NORM", "optimizer.weight_decay_norm");
    t_.copy("SOLVER.WEIGHT_DECAY_BIAS", "optimizer.weight_decay_bias");
    t_.copy("SOLVER.BIAS_LR_FACTOR", "optimizer.bias_lr_factor");
    read_clipping();
    const auto half = t_.read("SOLVER.AMP.ENABLED");
    if (half.flag()) t_.put("train.precision", Config::Data(std::string("fp16")), half);
    read_schedule(images);
  }

  void read_clipping() {
    const auto enabled = t_.read("SOLVER.CLIP_GRADIENTS.ENABLED");
    const auto kind = t_.read("SOLVER.CLIP_GRADIENTS.CLIP_TYPE");
    const auto value = t_.read("SOLVER.CLIP_GRADIENTS.CLIP_VALUE");
    t_.read("SOLVER.CLIP_GRADIENTS.NORM_TYPE");
    if (!enabled.flag()) return;
    if (kind.text() == "value")
      t_.put("optimizer.clip_value", value.real(), value);
    else if (kind.text() == "full_model")
      t_.put("optimizer.clip_norm", value.real(), value);
    else
      t_.leave_out(kind,
                   "the norm of each parameter's gradient; optimizer.clip_norm bounds that of "
                   "all together, optimizer.clip_value each number");
  }

  void read_schedule(std::int64_t images_per_step) {
    const auto steps = t_.read("SOLVER.MAX_ITER");
    const auto drops = t_.read("SOLVER.STEPS");
    const auto kind = t_.read("SOLVER.LR_SCHEDULER_NAME");
    const auto gamma = t_.read("SOLVER.GAMMA");
    if (!images_)
      steps.fail(
          "how many epochs are that? Say how many images of the training split have an object: "
          "--images N");
    const double per_epoch = static_cast<double>(*images_) / static_cast<double>(images_per_step);
    const auto how = [&](double iterations) {
      return fmt::format("{} x {} images / {}", iterations, images_per_step, *images_);
    };
    t_.put("train.epochs", rounded_epochs(steps.real() / per_epoch), steps, how(steps.real()));
    if (kind.text() == "WarmupCosineLR") {
      t_.put("schedule.type", Config::Data(std::string("cosine")), kind);
    } else if (kind.text() == "WarmupMultiStepLR") {
      std::vector<double> milestones;
      for (const double at : drops.reals()) {
        if (at < steps.real())
          milestones.push_back(rounded_epochs(at / per_epoch));
        else
          t_.leave_out(drops, fmt::format("{} is not before MAX_ITER", at));
      }
      t_.put("schedule.milestones", milestones, drops,
             fmt::format("x {} images / {}", images_per_step, *images_));
      t_.put("schedule.gamma", gamma.real(), gamma);
    } else {
      t_.leave_out(kind, "schedule.type is step, cosine, poly, exponential or constant");
    }
    t_.expect("SOLVER.BASE_LR_END", lit(0.0), "the rate falls to 0");
    t_.expect("SOLVER.RESCALE_INTERVAL", lit(false), "the warm-up is a part of the schedule");
    t_.read("SOLVER.NUM_DECAYS");
    const auto warmup = t_.read("SOLVER.WARMUP_ITERS");
    t_.put("schedule.warmup", Config::Data(fmt::format("{} steps", warmup.integer())), warmup);
    t_.copy("SOLVER.WARMUP_FACTOR", "schedule.warmup_factor");
    t_.expect("SOLVER.WARMUP_METHOD", lit(std::string("linear")), "the warm-up is linear");
  }

  // ---- The run

  void read_run() {
    if (is_set("SOLVER.CHECKPOINT_PERIOD"))
      period("SOLVER.CHECKPOINT_PERIOD", "callbacks.checkpoint");
    if (is_set("TEST.EVAL_PERIOD")) {
      if (t_.look("TEST.EVAL_PERIOD").integer() > 0)
        period("TEST.EVAL_PERIOD", "callbacks.evaluate");
      else
        t_.leave_out(t_.read("TEST.EVAL_PERIOD"),
                     "evaluated each epoch; callbacks.evaluate.every says how often");
    }
    if (const auto folder = t_.read("OUTPUT_DIR"); is_set("OUTPUT_DIR"))
      t_.put("train.output", Config::Data(folder.text()), folder);
    const auto seed = t_.read("SEED");
    if (seed.integer() >= 0)
      t_.put("train.seed", seed.real(), seed);
    else if (is_set("SEED"))
      t_.leave_out(seed, "a run always has a seed: train.seed");
    if (is_set("MODEL.DEVICE")) {
      const auto device = t_.read("MODEL.DEVICE");
      if (device.text() == "cpu")
        t_.put("train.device", Config::Data(std::string("cpu")), device);
      else
        t_.leave_out(device, "train.device = \"cuda\", which needs a plug-in (docs/gpu.md)");
    }
    t_.expect("CUDNN_BENCHMARK", lit(false), "train.deterministic = false lets libtorch choose");
    t_.expect("FLOAT32_PRECISION", lit(std::string()), "train.precision: fp32, tf32, bf16, fp16");
    t_.expect("VIS_PERIOD", lit(std::int64_t{0}), "callbacks.pictures draws validation images");
    t_.expect("TEST.EXPECTED_RESULTS", lit(Value::List{}),
              "callbacks.evaluate has `targets`, which end the training when they are reached");
    t_.expect("TEST.PRECISE_BN.ENABLED", lit(false),
              "statistics are those of training; frozen_bn keeps those of the weights");
    t_.read("TEST.PRECISE_BN.NUM_ITER");
  }

  void period(const std::string& theirs, const std::string& callback) {
    const auto found = t_.read(theirs);
    t_.put(callback + ".every", Config::Data(fmt::format("{} steps", found.integer())), found);
  }

  /// Whether the recipe itself says it.
  bool is_set(const std::string& path) const { return recipe_.at_path(path) != nullptr; }

  void note_rest() {
    for (const auto& other : kOthers)
      if (is_set(other.path)) t_.leave_out_rest(other.path, other.reason);
    note_rest_of(recipe_, "");
  }

  /// What the recipe says and no rule above has read.
  void note_rest_of(const Value& tree, const std::string& path) {
    for (const auto& [key, value] : tree.dict()) {
      const auto at = path.empty() ? key : path + "." + key;
      const bool is_other =
          std::ranges::any_of(kOthers, [&](const Other& one) { return at == one.path; });
      if (is_other) continue;
      if (value.is_dict())
        note_rest_of(value, at);
      else
        t_.leave_out_rest(at, known_.at_path(at) ? "without an effect on this model"
                                                 : "no key of detectron2 0.6 itself: code adds it");
    }
  }

  /// Defaults that have no counterpart are no news.
  std::vector<LeftOut> kept_notes() const {
    auto notes = t_.left_out();
    std::erase_if(notes, [](const LeftOut& one) { return one.place == kDefaultPlace.source; });
    return notes;
  }

  static constexpr const char* kNoWeights = "losses are added without weights";

  const Value& recipe_;
  const ImportOptions& options_;
  const Value known_ = default_tree();
  Translation t_;
  std::optional<std::int64_t> images_;
  bool augments_ = false;
  bool on_c4_ = false;  // heads without a pyramid
};

}  // namespace

ImportedConfig import_detectron2(Value tree, const ImportOptions& options) {
  auto whole = default_tree();
  merge(whole, tree);
  return Rules(tree, whole, options).all();
}

}  // namespace millrace
