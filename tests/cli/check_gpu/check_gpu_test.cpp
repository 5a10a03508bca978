// trainer check-gpu on the device of the tests' own: every part runs, and what fails does not stop
// the rest.
#include <map>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class CheckGpu : public Trainer {
 protected:
  ~CheckGpu() override { ::unsetenv("MILLRACE_OTHER_DEVICE_FAULT"); }

  Outcome check(const Words& more) const {
    return trainer(Words{"check-gpu", "--small", "--device", "other", "--plugin",
                         OTHER_DEVICE_PLUGIN, "--out", in_folder("out")} +
                   more);
  }
  Json report() const { return read_json(in_folder("out/check-gpu.json")); }

  std::map<std::string, Json> parts() const {
    std::map<std::string, Json> all;
    const auto whole = report();
    for (const auto& part : whole.at("parts")) all[part.at("name")] = part;
    return all;
  }
};

TEST_F(CheckGpu, RunsEveryPartOnADevice) {
  const auto end = check({});
  EXPECT_EQ(report().at("result"), "ok") << end.out << end.err;
  EXPECT_EQ(end.exit_code, 0);
  const auto all = parts();
  for (const auto* name : {"device", "operators", "steps", "bf16", "profile", "determinism",
                           "upload", "graph", "flow", "recipe", "fp16", "resume", "nccl"}) {
    ASSERT_TRUE(all.contains(name)) << name;
    EXPECT_EQ(all.at(name).at("state"), "ok") << all.at(name).dump(1);
  }
  EXPECT_GT(all.at("operators").at("checks").size(), 50U);
  for (const auto* detector : {"maskrcnn", "fasterrcnn", "cascadercnn", "retinanet"})
    EXPECT_THAT(all.at("steps").dump(), HasSubstr(detector));
  EXPECT_EQ(all.at("device").at("facts").at("the device"), "of the tests' own");
  EXPECT_GT(all.at("bf16").at("tables").begin()->at(0).at("images/s").get<double>(), 0);
  const auto page = read_text(in_folder("out/check-gpu.md"));
  for (const auto& [name, part] : all) EXPECT_THAT(page, HasSubstr("\n## " + name + ": "));
}

TEST_F(CheckGpu, ACrashAndAnExceptionDoNotStopTheRest) {
  for (const auto& [fault, state, why] :
       {std::tuple{"crash", "crashed", "Aborted"}, {"throw", "failed", ""}}) {
    ::setenv("MILLRACE_OTHER_DEVICE_FAULT", fault, 1);
    const auto end = check({"--only", "operators", "--only", "upload"});
    EXPECT_EQ(end.exit_code, 1) << end.err;
    EXPECT_EQ(report().at("result"), "failed");
    const auto all = parts();
    EXPECT_EQ(all.at("operators").at("state"), state);
    EXPECT_THAT(all.at("operators").at("why").get<std::string>(), HasSubstr(why));
    EXPECT_GT(all.at("operators").at("checks").size(), 5U) << "what was found before";
    EXPECT_EQ(all.at("upload").at("state"), "ok") << all.at("upload").dump(1);
  }
}

TEST_F(CheckGpu, WhatHangsIsKilledAndWhatItHasFoundStays) {
  ::setenv("MILLRACE_OTHER_DEVICE_FAULT", "hang", 1);
  const auto end = check({"--only", "operators", "--only", "upload", "--minutes", "1"});
  EXPECT_EQ(end.exit_code, 1) << end.err;
  const auto all = parts();
  EXPECT_EQ(all.at("operators").at("state"), "timed out");
  EXPECT_GT(all.at("operators").at("checks").size(), 5U);
  EXPECT_EQ(all.at("upload").at("state"), "not begun");
}

TEST_F(CheckGpu, WhatCannotRunAtAllIsSaidInOneSentence) {
  expect_error(trainer({"check-gpu", "--out", in_folder("out"), "--plugin", "none.so"}), 2,
               "cannot load the plug-in 'none.so': there is neither");
  EXPECT_EQ(report().at("result"), "cannot run");
  expect_error(trainer({"check-gpu", "--out", in_folder("out"), "--device", "tpu", "--plugin",
                        OTHER_DEVICE_PLUGIN}),
               2, "--device tpu: the plug-in " OTHER_DEVICE_PLUGIN " brings no such device");
  expect_error(check({"--only", "operator"}), 2,
               "there is no part 'operator'; did you mean 'operators'?");
  expect_error(check({"--minutes", "0"}), 2, "--minutes: takes numbers above 0");
}

}  // namespace
}  // namespace millrace::testing
