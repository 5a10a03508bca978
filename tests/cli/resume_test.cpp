// Which run `--resume` resumes, what it leaves unchanged, and what a run folder records.
#include <map>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class ResumeRun : public Trainer {
 protected:
  fs::path data_ = make_data();
  fs::path runs_ = in_folder("runs");

  /// Writes a configuration file that inherits from the recipe.
  fs::path config(const std::string& name, const std::string& more = "") const {
    const auto file = in_folder(name);
    fs::create_directories(file.parent_path());
    return write_heir(
        file, "[data]\nroot = '" + data_.string() +
                  "'\nshort_side = 64\nmax_side = 96\n[model]\nbackbone.width = 16\n"
                  "[schedule]\nwarmup = '2 steps'\n[callbacks.checkpoint]\nevery = '1 steps'\n"
                  "[callbacks.evaluate]\nenabled = false\n[callbacks.pictures]\n"
                  "enabled = false\n" +
                  more);
  }

  Outcome train(const fs::path& config, const Words& more = {}, int steps = 2) const {
    const bool elsewhere = std::ranges::find(more, "--out") != more.end();
    return trainer(with_settings({"run", config},
                                 {"train.max_steps=" + std::to_string(steps), "train.epochs=100"}) +
                   (elsewhere ? Words{} : Words{"--out", runs_}) + more);
  }

  static int steps_of(const fs::path& run) {
    return read_json(run / "checkpoints" / "latest" / "state.json").at("state").at("step");
  }

  /// Returns the step after which the last session of a run started.
  static int resumed_at(const fs::path& run) {
    return read_json(run / "record.json").at("starts").back().at("from_step");
  }

  Words folders() const {
    Words names;
    if (fs::exists(runs_))
      for (const auto& entry : fs::directory_iterator(runs_))
        names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  /// Returns the bytes and modification time of every file of a folder.
  static std::map<std::string, std::pair<std::string, fs::file_time_type>> bytes(
      const fs::path& folder) {
    std::map<std::string, std::pair<std::string, fs::file_time_type>> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file())
        all[entry.path()] = {read_text(entry), fs::last_write_time(entry)};
    return all;
  }
};

TEST_F(ResumeRun, LeavesNoFolderAfterFailedLaunch) {
  const auto exp = config("exp.toml");
  successful(train(exp));
  const std::vector<Words> wrong = {
      {"data.stages=[{type=\"nothing\"}]"},
      {"model.weights=\"nowhere.npz\""},
      {"schedule.warmup=1000 epochs", "train.max_steps=0"},
      {"optimizer.groups=[{match=\"no.such.parameter\"}]"},
      {"callbacks.latest.type=\"keep_best\"", "callbacks.latest.metric=\"loss\""},
      {"data.root=\"nowhere\""}};
  for (const auto& settings : wrong) {
    const auto failed = train(exp, with_settings({}, settings));
    EXPECT_NE(failed.exit_code, 0) << settings[0] << failed.err;
    EXPECT_THAT(folders(), ElementsAre("exp-1")) << settings[0] << failed.err;
  }
  successful(train(exp, {"--resume"}, 3));
  EXPECT_EQ(resumed_at(runs_ / "exp-1"), 2);
  EXPECT_EQ(steps_of(runs_ / "exp-1"), 3);
}

TEST_F(ResumeRun, RejectsRunOfDifferentConfiguration) {
  successful(train(config("exp1.toml")));
  const auto before = bytes(runs_);
  const auto exp2 = config("exp2.toml");
  const auto refused = train(exp2, {"--resume"});
  expect_error(refused, 2, runs_.string());
  EXPECT_THAT(refused.err, AllOf(HasSubstr("exp2"), HasSubstr((runs_ / "exp1-1").string()),
                                 HasSubstr("--resume=auto")));
  EXPECT_EQ(bytes(runs_), before);

  successful(train(exp2, {"--resume=auto"}));
  EXPECT_THAT(folders(), ElementsAre("exp1-1", "exp2-1"));
  successful(train(exp2, {"--resume=auto"}, 3));
  EXPECT_EQ(resumed_at(runs_ / "exp2-1"), 2);
  EXPECT_THAT(folders(), ElementsAre("exp1-1", "exp2-1"));
}

TEST_F(ResumeRun, RejectsDifferentFileOfSameName) {
  successful(train(config("a/exp.toml")));
  const auto other = config("b/exp.toml", "[optimizer]\nlr = 0.5\n");
  const auto refused = train(other, {"--resume"});
  expect_error(refused, 2, fs::canonical(in_folder("a/exp.toml")).string());
  EXPECT_THAT(refused.err, HasSubstr("optimizer.lr"));
  const auto moved = config("c/exp.toml");
  successful(train(moved, {"--resume", "--set", "train.epochs=100"}));
  EXPECT_EQ(steps_of(runs_ / "exp-1"), 2);
  const auto named = successful(train(other, {"--resume", "--out", runs_ / "exp-1"}, 3));
  EXPECT_THAT(named.err, HasSubstr("optimizer.lr"));
}

TEST_F(ResumeRun, AcceptsRunFolderAsOutput) {
  const auto exp = config("exp.toml");
  successful(train(exp));
  successful(train(exp));
  for (const std::string slash : {"", "/"}) {
    const int steps = slash.empty() ? 3 : 4;
    successful(train(exp, {"--resume", "--out", (runs_ / "exp-1").string() + slash}, steps));
    EXPECT_EQ(steps_of(runs_ / "exp-1"), steps);
  }
  EXPECT_EQ(steps_of(runs_ / "exp-2"), 2);
  expect_error(train(exp, {"--out", runs_ / "exp-1"}), 2, "--resume");
  EXPECT_FALSE(fs::exists(runs_ / "exp-1" / "exp-1"));
  fs::remove_all(runs_ / "exp-2" / "checkpoints");
  expect_error(train(exp, {"--resume", "--out", runs_ / "exp-2"}), 2, (runs_ / "exp-2").string());
}

TEST_F(ResumeRun, NamesUnwritableOutput) {
  const auto file = in_folder("file");
  write_text(file, "");
  expect_error(train(config("exp.toml"), {"--out", file / "runs"}), 2, file.string());
}

TEST_F(ResumeRun, LeavesOtherFoldersUnchanged) {
  const auto exp = config("exp.toml");
  fs::create_directories(runs_ / "backup-20240101");
  write_text(runs_ / "backup-20240101" / "notes.txt", "mine");
  const auto before = bytes(runs_ / "backup-20240101");
  expect_error(train(exp, {"--resume"}), 2, "backup-20240101");
  successful(train(exp));
  EXPECT_THAT(folders(), ElementsAre("backup-20240101", "exp-1"));
  fs::copy(runs_ / "exp-1", runs_ / "exp-1-copy", fs::copy_options::recursive);
  successful(train(exp, {"--resume"}, 3));
  EXPECT_EQ(resumed_at(runs_ / "exp-1"), 2);
  EXPECT_EQ(steps_of(runs_ / "exp-1-copy"), 2);
  EXPECT_EQ(bytes(runs_ / "backup-20240101"), before);
}

TEST_F(ResumeRun, LeavesDoneRunUnchanged) {
  const auto exp = config("exp.toml");
  successful(train(exp));
  const auto before = bytes(runs_);
  for (const auto* resume : {"--resume", "--resume=auto"}) {
    const auto again = successful(train(exp, {resume}));
    EXPECT_THAT(again.err, AllOf(HasSubstr("exp-1"), HasSubstr("step 2")));
    EXPECT_EQ(bytes(runs_), before);
  }
}

TEST_F(ResumeRun, ResumesRunOfOlderVersionByFolder) {
  const auto exp = config("exp.toml");
  successful(train(exp));
  fs::remove(runs_ / "exp-1" / "record.json");
  EXPECT_THAT(train(config("exp2.toml"), {"--resume"}).err, HasSubstr((runs_ / "exp-1").string()));
  successful(train(exp, {"--resume"}, 3));
  EXPECT_EQ(steps_of(runs_ / "exp-1"), 3);
  EXPECT_EQ(read_json(runs_ / "exp-1" / "record.json").at("name"), "exp");

  write_text(runs_ / "exp-1" / "record.json", "{");
  expect_error(train(exp, {"--resume"}), 2, "record.json");
}

TEST_F(ResumeRun, RejectsFileAsOutput) {
  const auto exp = config("exp.toml");
  write_text(in_folder("file"), "mine");
  for (const auto* output : {"file", "file/runs"}) {
    expect_error(train(exp, {"--out", in_folder(output).string()}), 2, in_folder("file").string());
    expect_error(train(exp, {"--resume=auto", "--out", in_folder(output).string()}), 2,
                 in_folder("file").string());
  }
  expect_error(train(exp, {"--resume=perhaps"}), 2, "'perhaps'");
}

TEST_F(ResumeRun, RejectsChangedMeaningOfWeights) {
  const auto exp = config("exp.toml");
  successful(train(exp));
  for (const std::string setting :
       {"model.anchors.sizes=[[8],[16],[32],[64],[128]]", "model.pixel_mean=[1.0,2.0,3.0]",
        "model.boxes.offset=1.0", "model.roi.aligned=false"}) {
    const auto refused = train(exp, with_settings({"--resume"}, {setting}), 3);
    expect_error(refused, 2, setting.substr(0, setting.find('=')));
  }
  successful(train(
      exp,
      with_settings({"--resume"}, {"model.pixel_mean=[1.0,2.0,3.0]", "model.force_weights=true"}),
      3));
  EXPECT_EQ(steps_of(runs_ / "exp-1"), 3);
}

TEST_F(ResumeRun, RejectsAnnotationsChangedInPlace) {
  const auto exp = config("exp.toml");
  successful(train(exp));
  const auto changed = [&](const std::string& split, const auto& check) {
    const auto file = data_ / "annotations" / ("instances_" + split + ".json");
    const auto before = read_text(file);
    auto json = read_json(file);
    auto& width = json["annotations"][0]["bbox"][2];
    width = width.get<double>() / 2;
    write_json(file, json);
    check(train(exp, {"--resume"}, 3), file);
    write_text(file, before);
  };
  changed("train2017",
          [](const Outcome& end, const fs::path& file) { expect_error(end, 2, file.string()); });
  EXPECT_EQ(steps_of(runs_ / "exp-1"), 2);
  changed("val2017", [](const Outcome& end, const fs::path& file) {
    EXPECT_THAT(successful(end).err, ContainsRegex("warning .*" + file.string()));
  });
  successful(train(exp, {"--resume"}, 4));
}

TEST_F(ResumeRun, FreezesAndUnfreezesParameters) {
  const std::string frozen = "optimizer.groups=[{match='*mask_head*', frozen=true}]",
                    other = "optimizer.groups=[{match='*box_head*', frozen=true}]";
  for (const std::string type : {"sgd", "adamw"}) {
    const auto exp = config(type + ".toml", "[optimizer]\ntype = '" + type + "'\n");
    successful(train(exp, with_settings({}, {frozen})));
    const auto second = successful(train(exp, with_settings({"--resume"}, {other}), 3));
    EXPECT_THAT(second.err,
                AllOf(HasSubstr("roi_heads.box_head"), HasSubstr("roi_heads.mask_head")));
    const auto third = successful(train(exp, {"--resume"}, 4));
    EXPECT_THAT(third.err,
                AllOf(HasSubstr("roi_heads.box_head"), Not(HasSubstr("roi_heads.mask_head"))));
  }
}

TEST_F(ResumeRun, NamesIntactCheckpoint) {
  const auto exp = config("exp.toml");
  successful(train(exp, {}, 3));
  const auto checkpoints = runs_ / "exp-1" / "checkpoints";
  write_text(checkpoints / "step-000003" / "model.safetensors", "damaged");
  write_text(checkpoints / "step-000002" / "optimizer.safetensors", "damaged");
  for (const auto& model : {runs_ / "exp-1", checkpoints / "latest"})
    for (const Words& command :
         {Words{"predict", model, data_ / "val2017", "--out", in_folder("found")},
          Words{"eval", exp, "--weights", model.string()},
          Words{"export", model, "--out", in_folder("a.onnx")}}) {
      if (command[0] == "eval" && model == runs_ / "exp-1") continue;
      const auto end = trainer(command);
      EXPECT_EQ(end.exit_code, 1) << command[0] << end.err;
      EXPECT_THAT(end.err, HasSubstr("step-000001"));
    }
  fs::remove(checkpoints / "step-000003" / "model.safetensors");
  EXPECT_THAT(
      trainer({"predict", runs_ / "exp-1", data_ / "val2017", "--out", in_folder("found")}).err,
      HasSubstr("step-000001"));
}

TEST_F(ResumeRun, WarnsAboutEditsThatAreNotRepeated) {
  const auto exp = config("exp.toml");
  successful(train(exp));
  const auto journal = runs_ / "exp-1" / "edits.jsonl";
  const auto edit = [](int step) {
    return Json{{"after_step", step}, {"name", "lr_factor"}, {"to", 0.5}}.dump() + "\n";
  };
  write_text(journal, edit(1));
  EXPECT_THAT(train(exp, {"--resume"}, 3).err, Not(HasSubstr(journal.string())));
  write_text(journal, edit(1) + edit(8));
  EXPECT_THAT(train(exp, {"--resume"}, 4).err, ContainsRegex("warning .*" + journal.string()));
  const auto edited = with_settings({"--resume"}, {"callbacks.live_edit.enabled=true"});
  EXPECT_THAT(train(exp, edited, 5).err, Not(ContainsRegex("warning .*" + journal.string())));
}

TEST_F(ResumeRun, NeedsNoValidationSplitWithoutEvaluation) {
  const auto exp = config("exp.toml");
  fs::remove(data_ / "annotations" / "instances_val2017.json");
  successful(train(exp));
  EXPECT_NE(train(exp, with_settings({}, {"callbacks.evaluate.enabled=true"})).exit_code, 0);
  EXPECT_NE(train(exp, with_settings({}, {"callbacks.validation_loss.every='1 epoch'"})).exit_code,
            0);
  successful(train(exp, with_settings({}, {"data.root='nowhere'", "data.classes=['a']",
                                           "data.sources=[{type='fake', count=4}]"})));
}

TEST_F(ResumeRun, FailsIfNoStepSucceeds) {
  const auto exp = config("exp.toml", "[optimizer]\nlr = 1e18\n");
  EXPECT_EQ(train(exp, with_settings({}, {"schedule.warmup='0 steps'"}), 6).exit_code, 1);
}

TEST_F(ResumeRun, RecordsEnvironmentOfEachSession) {
  fs::create_directory(in_folder("project"));
  const auto exp = config("project/exp.toml");
  const auto in_project = [&](const std::string& command) {
    return std::system(("cd '" + in_folder("project").string() + "' && " + command).c_str());
  };
  ASSERT_EQ(in_project("git init -q && git add . && git -c user.name=a -c user.email=a@b.c commit "
                       "-q -m first && git rev-parse HEAD > ../revision"),
            0);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  ::setenv("MILLRACE_SECRET", "hidden", 1);
  successful(train(exp));
  ::unsetenv("OMP_NUM_THREADS");
  ::unsetenv("MILLRACE_SECRET");
  write_text(exp, read_text(exp) + "# changed\n");
  successful(train(exp, {"--resume"}, 3));

  const auto run = runs_ / "exp-1";
  EXPECT_THAT(read_text(run / "record.json"), Not(HasSubstr("hidden")));
  EXPECT_THAT(read_text(run / "log.txt"),  // including output from before the folder existed
              AllOf(HasSubstr("6 classes"), HasSubstr("step 2")));
  const auto record = read_json(run / "record.json");
  EXPECT_EQ(record.at("config_file"), fs::canonical(exp).string());
  ASSERT_EQ(record.at("starts").size(), 2);
  const auto first = record.at("starts").at(0), second = record.at("starts").at(1);
  EXPECT_EQ(first.at("from_step"), 0);
  EXPECT_EQ(first.at("ended").at("step"), 2);
  EXPECT_EQ(first.at("ended").at("reason"), "done");
  EXPECT_EQ(first.at("command").at(1), "run");
  EXPECT_EQ(first.at("directory"), fs::current_path().string());
  EXPECT_THAT(first.at("program").get<std::string>(), HasSubstr("trainer "));
  EXPECT_TRUE(first.at("versions").contains("libtorch"));
  EXPECT_EQ(first.at("environment").at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(first.at("ranks").size(), 1);
  EXPECT_TRUE(first.at("ranks").at(0).contains("host"));
  auto revision = read_text(in_folder("revision"));
  revision.pop_back();
  EXPECT_EQ(first.at("repository").at("revision"), revision);
  EXPECT_TRUE(first.at("repository").at("diff").is_null());
  EXPECT_EQ(second.at("from_step"), 2);
  EXPECT_FALSE(second.at("environment").contains("OMP_NUM_THREADS"));
  EXPECT_THAT(read_text(run / second.at("repository").at("diff").get<std::string>()),
              HasSubstr("\n+# changed\n"));
}

}  // namespace
}  // namespace millrace::testing
