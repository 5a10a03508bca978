"""The tests of faster-coco-eval that cannot pass with our classes, and why.

Each entry is a whole file or one test, named as by pytest. What only that package has and not
pycocotools (its drawing, its other evaluators, its private functions) is out of scope."""

EXTRA = "faster_coco_eval.extra: drawing and analysis of that package"
PRIVATE = "private functions of that package's extension"
RANGES = "ranges=, which pycocotools does not have"
NO_SIZE = "frUncompressedRLE without a size, which pycocotools does not have"
NAMES = "a name of that package that pycocotools does not have"
BOUNDARY = "boundary IoU, which pycocotools does not have"
NO_DATA = "its data are not in the source distribution"
SHORT = "an RLE whose runs do not fill its size, which we refuse"
WORKERS = "how that package divides its work over threads"

API = "test_coco_api_and_evaluator_regressions.py"
LOW = "test_core_low_regressions.py"
MASK = "test_mask_api.py::TestMaskApi"

LEFT_OUT = {
    "test_basic.py": EXTRA,
    "test_cpp_safety_regressions.py": PRIVATE,
    "test_dataset.py": PRIVATE,
    "test_display_matrix_normalization.py": EXTRA,
    "test_extra_curves.py": EXTRA,
    "test_extra_draw.py": EXTRA,
    "test_extra_regressions.py": EXTRA,
    "test_extra_utils.py": EXTRA,
    "test_simple_extra.py": EXTRA,
    "test_boundary.py": BOUNDARY,
    "test_crowdpose.py": NO_DATA,
    "test_keypoints.py": NO_DATA,
    "test_lvis_metric.py": "LVIS by a COCO class; ours is millrace.coco.LVIS, checked with lvis",
    "test_init_pycocotools.py": "that package's modules by name",
    "test_pytorch_coco_dataset.py": "a dataset of that package",
    "test_orphan_annotations.py::TestOrphanAnnotations"
    "::test_create_index_builds_all_annotation_indexes_in_one_pass": (
        "counts how often a list is walked through in Python"
    ),
    "test_ranges.py::TestRanges::test_eval_0_bbox": RANGES,
    "test_ranges.py::TestRanges::test_eval_1_segm": RANGES,
    f"{API}::test_custom_summary_layout_matches_configured_ranges_and_max_dets": RANGES,
    f"{API}::test_invalid_core_iou_types_raise_value_error": "we raise pycocotools' Exception",
    f"{API}::test_load_res_rejects_unsupported_result_types": (
        "we raise pycocotools' AssertionError"
    ),
    f"{API}::test_dump_round_trips_indexed_dataset": NAMES + ": dump",
    f"{API}::test_core_collection_defaults_are_not_shared_mutable_objects": (
        NAMES + ": get_ann_ids"
    ),
    f"{API}::test_math_matches_clears_annotations_before_a_second_run": NAMES + ": math_matches",
    f"{API}::test_sparse_iou_dispatch_preserves_empty_public_pairs": (
        "annotations without iscrowd, which pycocotools refuses as well"
    ),
    f"{API}::test_accumulation_is_deterministic_across_category_area_tasks": NAMES + ": matched",
    f"{API}::test_evaluate_rle_iou_worker_cap_two_overlaps_real_iou_results": WORKERS,
    f"{API}::test_constructor_exposes_rle_iou_worker_cap_default": WORKERS,
    f"{API}::test_constructor_rejects_non_integer_rle_iou_worker_caps": WORKERS,
    f"{API}::test_constructor_rejects_non_positive_rle_iou_worker_caps": WORKERS,
    f"{API}::test_evaluate_rle_iou_worker_cap_one_stays_serial": WORKERS,
    f"{API}::test_evaluate_limits_rle_iou_workers_by_capacity_cap_and_pair_count": WORKERS,
    f"{API}::test_evaluate_bounds_pending_rle_iou_submission_while_workers_block": WORKERS,
    f"{LOW}::test_coco_loaders_reject_non_integer_ids": "we raise KeyError with the id",
    f"{LOW}::test_to_dict_separate_fn_does_not_mutate_indexed_annotations": NAMES + ": to_dict",
    f"{LOW}::test_python_auc_does_not_mutate_its_input_arrays": NAMES + ": calc_auc",
    f"{LOW}::test_extra_metrics_require_matching_data_and_handle_empty_matches": (
        NAMES + ": compute_mIoU"
    ),
    f"{MASK}::testAnnToRLE": SHORT,
    f"{MASK}::testSegmToRle": NAMES + ": segmToRle",
    f"{MASK}::test_decode_rejects_count_larger_than_each_mask": NO_SIZE,
    f"{MASK}::test_decode_rejects_count_smaller_than_mask": NO_SIZE,
    f"{MASK}::test_frPyObjects_0": SHORT,
    f"{MASK}::test_frPyObjects_1": SHORT,
    f"{MASK}::test_frString": PRIVATE,
    f"{MASK}::test_frUncompressedRLE": NO_SIZE,
    f"{MASK}::test_fr_poly_preserves_64_bit_pixel_offsets": "a mask of more than 2^32 - 1 rows",
    f"{MASK}::test_fr_py_objects_accepts_list_and_dict_subclasses": SHORT,
    f"{MASK}::test_iou_accepts_list_and_array_subclasses": SHORT,
    f"{MASK}::test_parallel_batch_erode_parity_and_order": NAMES + ": erode_3x3",
    f"{MASK}::test_parallel_batch_erode_propagates_malformed_item": NAMES + ": erode_3x3",
    f"{MASK}::test_rejects_oversized_rle_before_mask_operations": NAMES + ": erode_3x3",
    f"{MASK}::test_rle_rejects_count_length_mismatch": NAMES + ": a class RLE",
}
