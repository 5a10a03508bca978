// The description of the model in a weights file.
#include "millrace/trainer/run/trained_weights.h"

#include <ATen/ops/full.h>

#include <cmath>

#include "millrace/base/files.h"
#include "millrace/models/detector/detector.h"
#include "millrace/models/weights/formats.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;

struct CardOptions {
  std::vector<double> deviation = {1, 1};
  std::int64_t width = 64;
  std::string norm = "bn";
  double threshold = 0.5;
  void describe(Options& o) {
    o.add("deviation", deviation, "of pixels").affects(WeightEffect::meaning);
    o.add("width", width, "channels").affects(WeightEffect::tensors);
    o.add("norm", norm, "kind").affects(WeightEffect::tensors, {"bn", "sync_bn"});
    o.add("threshold", threshold, "of detections");
  }
};

MILLRACE_REGISTER(detectors().add<CardOptions>("card_test", "for tests",
                                               [](const Config&, const ModelContext&) {
                                                 return std::unique_ptr<Detector>();
                                               }));

Recipe recipe_of(const std::string& model) {
  return resolve(parse_config("[model]\ntype = \"card_test\"\n" + model, "c.toml"));
}

ModelCard card_of(const std::string& model) {
  return model_card(recipe_of(model), {"a", "Füße \"x\""}, {7, 3});
}

TEST(ModelCard, RoundTrips) {
  const auto card = card_of("deviation = [0.1, 58.395]\nweights = \"some/where\"");
  const auto again = card_in(to_metadata(card), "w.safetensors");
  ASSERT_TRUE(again);
  EXPECT_EQ(to_toml(again->model), to_toml(card.model));
  EXPECT_EQ(to_toml(again->data), to_toml(card.data));
  EXPECT_THAT(again->classes, ElementsAre("a", "Füße \"x\""));
  EXPECT_THAT(again->category_ids, ElementsAre(7, 3));
  EXPECT_EQ(again->model.find("weights"), nullptr) << "initial weights are not part of the model";
  EXPECT_FALSE(card_in({{"format", "pt"}}, "w.safetensors"));
}

TEST(ModelCard, RecordsTrainingWithoutTimes) {
  auto card = card_of("");
  EXPECT_EQ(card.training.data, "sample/train2017") << "without the path to it";
  EXPECT_FALSE(card.training.version.empty());
  const auto metadata = trained_further(to_metadata(card), 200, 2.5, {{"bbox/AP", 0.25}});
  const auto again = card_in(metadata, "w")->training;
  EXPECT_EQ(again.data, card.training.data);
  EXPECT_EQ(again.version, card.training.version);
  EXPECT_EQ(again.steps, 200);
  EXPECT_EQ(again.epochs, 2.5);
  EXPECT_THAT(again.scores, ElementsAre(std::pair<const std::string, double>("bbox/AP", 0.25)));
  EXPECT_EQ(to_metadata(*card_in(metadata, "w")), metadata);
  EXPECT_EQ(trained_further({{"format", "pt"}}, 1, 1, {}).size(), 1U)
      << "other files are left unchanged";
}

TEST(ModelCard, ContainsScoresOfItsOwnWeights) {
  const Scratch scratch;
  Checkpoint checkpoint;
  checkpoint.at.step = 3;
  checkpoint.at.progress = 1.5;
  checkpoint.latest = {{"bbox/AP", 0.5}, {"average/bbox/AP", 0.75}, {"segm/AP", std::nan("")}};
  checkpoint.model = {{"x", at::full({3}, 1.5)}};
  checkpoint.callback_tensors["average"] = {{"x", at::full({3}, 2.5)}};
  checkpoint.metadata = to_metadata(card_of(""));
  const auto folder = write_checkpoint(scratch / "c", checkpoint);
  const auto trained = read_card(folder)->training,
             average = read_card(folder / "callback.average.safetensors")->training;
  EXPECT_EQ(trained.steps, 3);
  EXPECT_EQ(trained.epochs, 1.5);
  EXPECT_EQ(trained.scores, (std::map<std::string, double>{{"bbox/AP", 0.5}}));
  EXPECT_EQ(average.scores, (std::map<std::string, double>{{"bbox/AP", 0.75}}));
}

TEST(ModelCard, ReadsResizeStyleOfVersion1) {
  auto metadata = to_metadata(card_of(""));
  const auto style = [&](const char* version, const std::string& name) {
    metadata["millrace.card"] = version;
    metadata["millrace.data"] = "resize_style = \"" + name + "\"\n";
    return std::get<std::string>(card_in(metadata, "w")->data.find("resize_style")->data);
  };
  EXPECT_EQ(style("1", "detectron2"), "opencv");
  EXPECT_EQ(style("1", "yolox"), "yolox");
  EXPECT_EQ(style("2", "detectron2"), "detectron2");
}

TEST(ModelCard, RejectsNewerOrDamagedCard) {
  auto metadata = to_metadata(card_of(""));
  metadata["millrace.card"] = "3";
  EXPECT_THROW(card_in(metadata, "w"), Error);
  metadata = to_metadata(card_of(""));
  metadata["millrace.classes"] = "[1, 2";
  EXPECT_THROW(card_in(metadata, "w"), Error);
  metadata = to_metadata(card_of(""));
  metadata["millrace.category_ids"] = "[1]";
  EXPECT_THROW(card_in(metadata, "w"), Error);
  metadata = to_metadata(card_of(""));
  metadata["millrace.training"] = R"({"steps": "many"})";
  EXPECT_THROW(card_in(metadata, "w"), Error);
}

TEST(ModelCard, ContradictsOnlyOptionsThatAffectWeights) {
  const auto card = card_of("deviation = [1, 2]\nwidth = 64\nnorm = \"bn\"\nthreshold = 0.1");
  EXPECT_TRUE(
      contradictions(card, recipe_of("deviation = [1.0, 2.0]\nnorm = \"sync_bn\"")).empty());
  const auto found =
      contradictions(card, recipe_of("deviation = [1, 3]\nwidth = 32\nnorm = \"gn\""));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].text(), "model.deviation: trained with [1, 2], here [1, 3] (c.toml:3:13)");
  EXPECT_EQ(found[0].effect, WeightEffect::meaning);
  EXPECT_EQ(found[1].key, "model.width");
  EXPECT_EQ(found[2].key, "model.norm");
}

/// Writes a weights file with two tensors and a model card.
std::filesystem::path sealed_file(const Scratch& scratch) {
  write_weights(scratch / "w.safetensors",
                {{"x", at::full({3}, 1.5)}, {"y", at::full({2, 2}, -2.0)}},
                to_metadata(card_of("")));
  return scratch / "w.safetensors";
}

TEST(ModelCard, DetectsEveryChangedByte) {
  const Scratch scratch;
  const auto file = sealed_file(scratch);
  const auto whole = read_file(file);
  const auto tensors = read_weights(file);
  ASSERT_EQ(tensors.size(), 2U);
  std::size_t harmless = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto bytes = whole;
    bytes[i] ^= 1;
    const auto damaged = scratch.file("damaged.safetensors", bytes);
    try {
      const auto read = read_weights(damaged);
      ++harmless;
      ASSERT_EQ(read.size(), 2U) << "byte " << i;
      for (std::size_t t = 0; t < 2; ++t) {
        EXPECT_EQ(read[t].first, tensors[t].first) << "byte " << i;
        EXPECT_TRUE(tensors_equal(read[t].second, tensors[t].second)) << "byte " << i;
      }
      EXPECT_EQ(to_toml(read_card(damaged)->model), to_toml(read_card(file)->model));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("damaged.safetensors"));
    }
  }
  EXPECT_EQ(harmless, 0U);
}

TEST(ModelCard, IsReadFromSurroundingCheckpoint) {
  const Scratch scratch;
  Checkpoint checkpoint;
  checkpoint.at.step = 3;
  checkpoint.classes = {"a", "b"};
  checkpoint.config =
      "[model]\ntype = \"card_test\"\nwidth = 32\n[data]\nroot = \"d\"\ntest_max_side = 96\n";
  checkpoint.model = {{"x", at::full({3}, 1.5)}};
  const auto folder = write_checkpoint(scratch / "c", checkpoint);
  for (const auto& named : {folder, folder / "model.safetensors", scratch / "c" / "latest"}) {
    const auto card = read_card(named);
    ASSERT_TRUE(card) << named;
    EXPECT_THAT(card->classes, ElementsAre("a", "b"));
    EXPECT_EQ(to_toml(card->data), "test_max_side = 96\n");
    EXPECT_EQ(contradictions(*card, recipe_of("")).at(0).text(),
              "model.width: trained with 32, here 64 (default)");
  }
  std::filesystem::copy_file(folder / "model.safetensors", scratch / "alone.safetensors");
  EXPECT_FALSE(read_card(scratch / "alone.safetensors"));
  write_file_atomically(folder / "config.toml", "[model]\n");
  MILLRACE_EXPECT_ERROR(read_card(folder), folder, "config.toml");
}

TEST(ModelCard, ReportsBrokenLinks) {
  const Scratch scratch;
  std::filesystem::create_symlink("latest", scratch / "latest");
  const auto loop = scratch / "latest";
  MILLRACE_EXPECT_ERROR(read_card(loop), loop, "Too many levels of symbolic links");
  std::filesystem::create_symlink("nowhere", scratch / "broken");
  const auto broken = scratch / "broken";
  MILLRACE_EXPECT_ERROR(read_weights(broken), broken, "link");
}

}  // namespace
}  // namespace millrace::testing
