#include <fmt/format.h>

#include <string>
#include <vector>

#include "millrace/migration/detectron2/parts.h"
#include "millrace/migration/translation/data_tables.h"

namespace millrace::detectron2 {
namespace {

std::vector<const Value*> names_of(Translation& t, const std::string& path) {
  const auto found = t.read(path);
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
void put_split(Translation& t, const std::vector<const Value*>& all, const std::string& role) {
  const auto path = role == "train" ? "DATASETS.TRAIN" : "DATASETS.TEST";
  const auto found = t.look(path);
  if (all.empty()) return;
  const auto name = std::get<std::string>(all.front()->data);
  const bool is_known = name.starts_with("coco_20") && name.size() > 10 && name[9] == '_' &&
                        (name.substr(10) == "train" || name.substr(10) == "val");
  if (all.size() > 1)
    return t.leave_out(found,
                       "several data sets: [[data.sources]], a table each and one with "
                       "type = \"concat\"; data.val takes one");
  if (!is_known)
    return t.leave_out(found,
                       fmt::format("a name that code registers: set data.root and data.{}, for "
                                   "ROOT/annotations/instances_SPLIT.json and ROOT/SPLIT/",
                                   role));
  if (role == "train")
    t.put("data.root", words("datasets/coco"), found,
          "in $DETECTRON2_DATASETS, by default ./datasets");
  t.put("data." + role, words(name.substr(10) + name.substr(5, 4)), found);
}

void read_sampler(Translation& t) {
  const auto sampler = t.read("DATALOADER.SAMPLER_TRAIN");
  const auto threshold = t.read("DATALOADER.REPEAT_THRESHOLD");
  t.expect("DATALOADER.REPEAT_SQRT", literal(true), "images repeat by the root of their factor");
  if (sampler.text() == "TrainingSampler") return;
  if (sampler.text() != "RepeatFactorTrainingSampler")
    return t.leave_out(sampler, "images come in a random order, each once an epoch");
  put_repeat_factor(t, threshold, sampler);
}

}  // namespace

std::optional<std::int64_t> read_data(Translation& t) {
  const auto train = names_of(t, "DATASETS.TRAIN");
  const auto test = names_of(t, "DATASETS.TEST");
  const auto filter = t.read("DATALOADER.FILTER_EMPTY_ANNOTATIONS");
  t.put("data.filter_empty", Config::Data(filter.flag()), filter);
  t.copy("DATALOADER.ASPECT_RATIO_GROUPING", "data.aspect_grouping");
  put_split(t, train, "train");
  put_split(t, test, "val");
  read_sampler(t);
  t.expect("DATALOADER.NUM_WORKERS", literal(std::int64_t{4}),
           "the flow is threads of this process, by default one per core: data.threads");
  t.expect("DATALOADER.RANDOM_SUBSET_RATIO", literal(1.0),
           "[[data.sources]] type = \"take\" or \"fixed_size\" reads a part of a data set");
  for (const auto* key : {"PROPOSAL_FILES_TRAIN", "PROPOSAL_FILES_TEST",
                          "PRECOMPUTED_PROPOSAL_TOPK_TRAIN", "PRECOMPUTED_PROPOSAL_TOPK_TEST"})
    t.leave_out_rest(std::string("DATASETS.") + key, "proposals are always made by the model");
  const bool is_coco =
      train.size() == 1 && std::get<std::string>(train.front()->data) == "coco_2017_train";
  if (!is_coco) return std::nullopt;
  return filter.flag() ? kCocoTrain2017WithObjects : kCocoTrain2017;
}

}  // namespace millrace::detectron2
