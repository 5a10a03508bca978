// trainer pack, and training from packed data.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class Pack : public Trainer {
 protected:
  Outcome pack(const fs::path& data, const fs::path& out, const Words& more = {}) const {
    return trainer(on(data, {"pack", "--out", out}) + more);
  }

  Words digests(const fs::path& data, const Words& overrides) const {
    const Words command = {"bench", "dataflow", "--batches", "6", "--digest", "--json"};
    return successful(trainer(on(data, command, overrides))).json().at("digests").get<Words>();
  }

  static std::string source(const fs::path& folder) {
    return "data.sources=[{type=\"records\", folder=\"" + folder.string() + "\"}]";
  }
};

TEST_F(Pack, YieldsSameBatchesAndTrains) {
  const auto data = make_data();
  const auto folder = in_folder("packed");
  EXPECT_THAT(successful(pack(data, folder)).out, HasSubstr("8 images"));
  EXPECT_EQ(digests(data, {source(folder)}), digests(data, {}));
  successful(trainer(on(data, {"run", "--out", in_folder("runs")},
                        {source(folder), "train.max_steps=2", "data.val=''"})));
}

TEST_F(Pack, YieldsSameBatchesFromShards) {
  const auto data = make_data();
  const auto folder = in_folder("shards"), index = in_folder("index");
  EXPECT_THAT(successful(pack(data, folder, {"--shards", "1"})).out, HasSubstr("1 shard"));
  EXPECT_EQ(digests(data, {source(folder)}), digests(data, {}));
  const auto made = successful(trainer({"index", folder / "000000.tar", "--out", index}));
  EXPECT_THAT(made.out, AllOf(HasSubstr("8 images"), HasSubstr("1 shard")));
  const auto outside = source(index);
  EXPECT_EQ(trainer(on(data, {"bench", "dataflow", "--batches", "1"}, {outside})).exit_code, 2);
  const auto allowed =
      outside.substr(0, outside.size() - 2) + ", shards=[\"" + folder.string() + "\"]}]";
  EXPECT_EQ(digests(data, {allowed}), digests(data, {}));
  expect_error(
      trainer({"index", data / "annotations/instances_train2017.json", "--out", in_folder("none")}),
      1, "instances_train2017.json");
}

TEST_F(Pack, ReducesImages) {
  const auto data = make_data();
  const auto folder = in_folder("packed");
  const auto made = successful(pack(data, folder, {"--max-side", "100"}));
  EXPECT_THAT(made.out, AllOf(HasSubstr("8 images"), HasSubstr("100 pixels"), HasSubstr("90")));
  EXPECT_THAT(made.err, HasSubstr("data.max_side"));
  digests(data, {source(folder)});
  expect_error(pack(data, in_folder("other"), {"--quality", "50"}), 2, "--max-side");
}

TEST_F(Pack, PacksGivenSplit) {
  const auto data = make_data();
  const auto made = successful(pack(data, in_folder("packed"), {"--split", "val"}));
  EXPECT_THAT(made.out, HasSubstr("4 images"));
  expect_error(pack(data, in_folder("other"), {"--split", "no_such"}), 2, "instances_no_such.json");
}

TEST_F(Pack, PacksAllDeclaredSources) {
  const auto data = make_data(), other = in_folder("other");
  successful(trainer({"sample", "--out", other, "--train", "3", "--val", "2", "--seed", "5"}));
  const auto coco = [](const std::string& name, const fs::path& root) {
    return "{name=\"" + name + "\", type=\"coco\", root=\"" + root.string() + "\"}";
  };
  const auto both = "data.sources=[" + coco("a", data) + "," + coco("b", other) +
                    ",{type=\"concat\", of=[\"a\",\"b\"]}]";
  const auto folder = in_folder("packed");
  const auto made = successful(pack(data, folder, {"--set", both}));
  EXPECT_THAT(made.out, HasSubstr("filter_empty = false"));
  EXPECT_EQ(digests(data, {source(folder)}), digests(data, {both}));
  const auto again = in_folder("again");
  successful(pack(data, again, {"--set", source(folder)}));
  EXPECT_EQ(digests(data, {source(again)}), digests(data, {both}));
  const auto weighted =
      both.substr(0, both.size() - 1) + ",{type=\"repeat\", of=[\"concat\"], times=2}]";
  expect_error(pack(data, in_folder("none"), {"--set", weighted}), 2, "data.sources");
  expect_error(pack(data, in_folder("none"), {"--set", "data.sources=[{type=\"fake\"}]"}), 1,
               "fake image 1");
}

TEST_F(Pack, RejectsExistingFolderAndMissingImages) {
  const auto data = make_data();
  successful(pack(data, in_folder("packed")));
  expect_error(pack(data, in_folder("packed")), 2, in_folder("packed").string());
  for (const auto& image : fs::directory_iterator(data / "train2017")) fs::remove(image.path());
  expect_error(pack(data, in_folder("again")), 1, "train2017");
  EXPECT_FALSE(fs::exists(in_folder("again.part")));
}

}  // namespace
}  // namespace millrace::testing
