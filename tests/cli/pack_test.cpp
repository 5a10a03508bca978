// trainer pack, and training from what it made.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class Pack : public Trainer {
 protected:
  Outcome pack(const fs::path& data, const fs::path& out,
               const std::vector<std::string>& more = {}) const {
    auto arguments = on(data, {"pack"});
    arguments.insert(arguments.end(), {"--out", out.string()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return trainer(arguments);
  }

  std::vector<std::string> digests(const fs::path& data,
                                   const std::vector<std::string>& overrides) const {
    auto arguments = on(data, {"bench", "dataflow"}, overrides);
    arguments.insert(arguments.end(), {"--batches", "6", "--digest", "--json"});
    const auto result = trainer(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json().at("digests").get<std::vector<std::string>>();
  }

  static std::string source(const fs::path& folder) {
    return "data.sources=[{type=\"records\", folder=\"" + folder.string() + "\"}]";
  }
};

TEST_F(Pack, GivesTheBatchesOfTheFiles) {
  const auto data = make_data();
  const auto folder = in_folder("packed");
  const auto made = pack(data, folder);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, ::testing::HasSubstr("8 images"));
  EXPECT_EQ(digests(data, {source(folder)}), digests(data, {}));
}

TEST_F(Pack, TrainsAModel) {
  const auto data = make_data();
  const auto folder = in_folder("packed");
  ASSERT_EQ(pack(data, folder).exit_code, 0);
  auto arguments = on(data, {"run"}, {source(folder), "train.max_steps=2", "data.val=\"\""});
  arguments.insert(arguments.end(), {"--output", in_folder("runs").string()});
  const auto run = trainer(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(Pack, TakesAnotherSplit) {
  const auto data = make_data();
  const auto made = pack(data, in_folder("packed"), {"--split", "val"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, ::testing::HasSubstr("4 images"));
  expect_error(pack(data, in_folder("other"), {"--split", "no_such"}), 2, "instances_no_such.json");
}

TEST_F(Pack, SaysWhatIsInItsWay) {
  const auto data = make_data();
  ASSERT_EQ(pack(data, in_folder("packed")).exit_code, 0);
  expect_error(pack(data, in_folder("packed")), 2, "exists already");
  for (const auto& image : fs::directory_iterator(data / "train2017")) fs::remove(image.path());
  expect_error(pack(data, in_folder("again")), 1, "cannot be opened");
  EXPECT_FALSE(fs::exists(in_folder("again.part")));
}

}  // namespace
}  // namespace millrace::testing
