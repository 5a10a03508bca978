// Every configuration in the repository resolves, and configuration errors name their location.
#include <sys/stat.h>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ConfigCommand = Trainer;

TEST_F(ConfigCommand, ResolvesEveryRepositoryConfiguration) {
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator("configs")) {
    const auto& file = entry.path();
    if (file.extension() != ".toml" || file.parent_path().filename() == "base") continue;
    // GPU configurations name a plug-in that cannot be loaded without a GPU.
    if (read_text(file).find("millrace_cuda.so") != std::string::npos)
      successful(trainer({"config", file, "--set", "plugins=[]"}));
    else
      successful(trainer({"config", file}));
    ++seen;
  }
  EXPECT_GE(seen, 12);
}

TEST_F(ConfigCommand, ResolvesResolvedFileToItself) {
  const auto once = trainer({"config", "configs/coco/aws_32x4.toml"});
  write_text(in_folder("once.toml"), once.out);
  const auto twice = successful(trainer({"config", in_folder("once.toml")}));
  const auto values = [](const std::string& toml) {
    std::istringstream lines(toml);
    std::string kept;
    for (std::string line; std::getline(lines, line);)
      kept += line.substr(0, line.find("  # ")) + "\n";
    return kept;
  };
  EXPECT_EQ(values(once.out), values(twice.out));
}

TEST_F(ConfigCommand, PrintsOriginOfEachValue) {
  const auto resolved =
      trainer({"config", "configs/coco/mask_rcnn_R50_FPN_3x.toml", "--set", "train.seed=7"});
  EXPECT_THAT(resolved.out, HasSubstr("# configs/coco/mask_rcnn_R50_FPN_3x.toml:"));
  EXPECT_THAT(resolved.out, HasSubstr("# configs/coco/base/detectron2.toml:"));
  EXPECT_THAT(resolved.out, HasSubstr("# default"));
  EXPECT_THAT(resolved.out, HasSubstr("# --set train.seed"));
}

/// A configuration file whose first line inherits from configs/maskrcnn.toml.
class WrongConfig : public Trainer {
 protected:
  void expect_wrong(const std::string& toml, const std::string& where, const std::string& what) {
    write_heir(file_, toml);
    const auto outcome = trainer({"config", file_});
    expect_error(outcome, 2, file_.string() + where);
    EXPECT_THAT(outcome.err, HasSubstr(what));
  }

 private:
  fs::path file_ = in_folder("wrong.toml");
};

TEST_F(WrongConfig, LocatesUnknownKeyAndSuggestsNearest) {
  expect_wrong("[train]\nepochs = 2\n  sead = 3\n", ":4:10: ", "'seed'");
  expect_wrong("[model]\nbackbon = 'resnet18'\n", ":3:11: ", "'backbone'");
  expect_wrong("[callbacks.log]\nevry = '1 step'\n", ":3:8: ", "'every'");
}

TEST_F(WrongConfig, LocatesWrongTypeOrNumber) {
  expect_wrong("[train]\nseed = \"one\"\n", ":3:8: ", "integer");
  expect_wrong("[data]\n\nflip = 1.5\n", ":4:8: ", "0 .. 1");
  for (const auto* line :
       {"[data]\nbatch_size = 2147483648", "[data]\nin_flight = 9223372036854775807",
        "[data]\nin_flight = -9223372036854775807", "[model]\nbox.fc_dim = 2147483647",
        "[data]\nshuffle_window = 9223372036854775807", "[train]\nmax_steps = 9223372036854775807",
        "[model]\nrpn.batch_size_per_image = 2147483648",
        "[optimizer]\nlr_batch = 9223372036854775807"})
    expect_wrong(std::string(line) + "\n", ":3:", "range");
}

TEST_F(WrongConfig, LocatesWrongStage) {
  const auto wrong = [&](const std::string& stages, const std::string& where,
                         const std::string& what) {
    expect_wrong("[data]\nstages = [\n" + stages + "]\n", where, what);
  };
  const std::string front = "{ type = 'read' },\n{ type = 'decode' },\n",
                    back = "{ type = 'group_by_aspect_ratio' },\n{ type = 'pad' }\n";
  wrong("{ type = 'red' },\n" + back, ":4:10: ", "'read'");
  wrong(front + "{ type = 'flip', probabilty = 1 },\n" + back, ":6:31: ", "'probability'");
  wrong(front + "{ type = 'flip', probability = 2 },\n" + back, ":6:32: ", "0 .. 1");
  wrong(front + "{ type = 'resize_shortest_edge', short_side = [] },\n" + back,
        ":6:47: ", "short_side");
  wrong(front + "{ type = 'resize_shortest_edge', short_side = [8, 4], range = true },\n" + back,
        ":6:1: ", "short_side");
  wrong(front + "{ type = 'affine', min_scale = 3 },\n" + back, ":6:1: ", "min_scale");
  wrong(front + "{ type = 'pad' }\n", ":6:1: ", "'decode'");
  wrong(front + "{ type = 'group_by_aspect_ratio' }\n", ":6:1: ", "batch");
  wrong("{ type = 'read' },\n{ type = 'flip' },\n{ type = 'decode' },\n" + back,
        ":5:1: ", "'decode'");
  wrong("{ type = 'read' },\n" + back, ":6:1: ", "'decode'");
  wrong(front + "{ type = 'group_by_aspect_ratio', batch_size = 3 },\n{ type = 'pad' }\n",
        ":6:1: ", "data.batch_size");
  wrong(front + "{ type = 'cache', where = 'disk' },\n" + back, ":6:1: ", "folder");
  wrong(front + "{ type = 'flip' },\n{ type = 'cache' },\n" + back, ":7:1: ", "'flip'");
}

TEST_F(WrongConfig, LocatesWrongSource) {
  const auto wrong = [&](const std::string& sources, const std::string& where,
                         const std::string& what) {
    expect_wrong("[data]\nsources = [" + sources + "]\n", where, what);
  };
  wrong("{ type = 'cocoa' }", ":3:21: ", "'coco'");
  wrong("{ type = 'fake', cuont = 3 }", ":3:37: ", "'count'");
  wrong("{ type = 'folder' }", ":3:12: ", "root");
  wrong("{ type = 'records' }", ":3:12: ", "folder");
  wrong("{ type = 'fake' }, { type = 'take', of = 'fale' }", ":3:31: ", "'fake'");
  wrong("{ type = 'fake' }, { type = 'mix', of = 'fake' }", ":3:31: ", "weights");
  wrong("{ type = 'fake' }, { type = 'coco' }", ":3:31: ", "fake");
}

TEST_F(WrongConfig, LocatesWrongSizeShapeOrAddress) {
  expect_wrong("[data]\nshort_side = []\n", ":3:14: ", "[800]");
  for (const auto* sides : {"800", "[800, 640]", "[1, 2, 3]"})
    expect_wrong(std::string("[data]\nshort_side_range = true\nshort_side = ") + sides + "\n",
                 ":4:14: ", "short_side");
  expect_wrong("[data]\npad_shapes = ['1344']\n", ":3:14: ", "'1344'");
  expect_wrong("[data]\npad_shapes = ['256x128']\n", ":3:14: ", "160");
  for (const auto* address : {"tcp://a", "tcp://:5555", "tcp://a:0", "tcp://a:66666",
                              "tcp://*:5555", "http://a:80", "a:5555", "ipc://", "tcp://a:5555x"})
    expect_wrong(std::string("[data]\nsource = ['") + address + "']\n",
                 ":3:10: ", std::string("'") + address + "'");
  expect_wrong("[data]\nsource_key = 'mine.key'\n", ":3:14: ", "data.source_server_key");
}

TEST_F(WrongConfig, LocatesWrongParameterOrWeights) {
  expect_wrong(
      "[callbacks.lr]\ntype = 'set_parameter'\nat = 0\nvalues = 1\nparameter = 'momentum'\n",
      ":6:13: ", "optimizer.momentum");
  expect_wrong("[callbacks.set_parameter]\nat = [0, 1]\nvalues = [1, -1]\n", ":4:10: ", "range");
  expect_wrong("[callbacks.average_weights]\n[callbacks.evaluate]\nweights = 'average_weihgts'\n",
               ":4:11: ", "'average_weights'");
  expect_wrong("[callbacks.evaluate]\nweights = 'log'\n", ":3:11: ", "[callbacks.average_weights]");
  expect_error(trainer({"config", "configs/maskrcnn.toml", "--set",
                        "callbacks.keep_best.metric=\"bbox/APP\""}),
               2, "'bbox/AP'");
}

TEST_F(ConfigCommand, CompletesStageOptions) {
  const auto file =
      write_heir(in_folder("stages.toml"),
                 "[data]\nflip = 0.25\nstages = [{ type = 'read' }, { type = 'decode' }, "
                 "{ type = 'flip' }, { type = 'group_by_aspect_ratio' }, { type = 'pad' }]\n");
  const auto resolved = successful(trainer({"config", file}));
  EXPECT_THAT(resolved.out, AllOf(HasSubstr("direction = \"horizontal\""),
                                  ContainsRegex("\n# probability = 0.25 +# data.flip\n")));
  write_text(file, resolved.out);
  const auto again = successful(trainer({"config", file, "--set", "data.flip=0.125"}));
  EXPECT_THAT(again.out, ContainsRegex("\n# probability = 0.125 +# data.flip\n"));
}

TEST_F(ConfigCommand, PrintsDefaultStages) {
  const auto shown = [&](const std::string& set) {
    const auto resolved = successful(trainer({"config", "configs/maskrcnn.toml", "--set", set}));
    return resolved.out;
  };
  const auto plain = shown("data.short_side=[96, 128]");
  EXPECT_THAT(plain, ContainsRegex("\\[\\[data.stages\\]\\]\ntype = \"decode\" +# default\n"));
  EXPECT_THAT(plain, ContainsRegex("\n# short_side = \\[96, 128\\] +# data.short_side\n"));
  EXPECT_THAT(plain, ContainsRegex("\n# short_side = 128 +# data.reduced_decoding\n"));
  EXPECT_THAT(shown("data.aspect_grouping=false"),
              ContainsRegex("\n# bounds = \\[\\] +# data.aspect_grouping\n"));
  EXPECT_THAT(shown("data.reduced_decoding=false"),
              ContainsRegex("\n# short_side = 0 +# data.reduced_decoding\n"));
}

TEST_F(ConfigCommand, RejectsPipeOrDevice) {
  const auto pipe = in_folder("pipe.yaml");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& file : {pipe, fs::path("/dev/zero")})
    expect_error(trainer({"config", file}), 2, file.string());
  expect_error(trainer({"import-config", pipe}), 2, pipe.string());
}

TEST_F(ConfigCommand, RejectsBrokenFilesAndUnknownNames) {
  const auto file = in_folder("bad.toml");
  write_text(file, "[train\nseed = 1\n");
  expect_error(trainer({"config", file}), 2, file.string() + ":1:");
  expect_error(trainer({"config", "nosuch.toml"}), 2, "nosuch.toml");
  for (const auto& [set, nearest] : {std::pair{"model.type=maskrcn", "maskrcnn"},
                                     {"callbacks.evalute.every='1 epoch'", "evaluate"}})
    expect_error(trainer({"config", "configs/maskrcnn.toml", "--set", set}), 2, nearest);
}

}  // namespace
}  // namespace millrace::testing
