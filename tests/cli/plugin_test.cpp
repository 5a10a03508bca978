// Plug-ins: their components are registered, load errors give the reason, and failures name the
// component.
#include "millrace/plugins/plugin.h"

#include <elf.h>

#include <algorithm>
#include <csignal>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class Plugin : public Trainer {
 protected:
  static std::string plugins(const Words& files) {
    std::string list;
    for (const auto& file : files) list += (list.empty() ? "'" : ", '") + file + "'";
    return "plugins=[" + list + "]";
  }

  /// Resolves the configuration with these plug-ins.
  Outcome config_with(const Words& files, const Words& settings = {}) const {
    return trainer(
        with_settings({"config", "configs/maskrcnn.toml"}, Words{plugins(files)} + settings));
  }

  /// Trains for one step on a tiny data set with a plug-in.
  Outcome train(const fs::path& plugin, const Words& settings) const {
    return trainer(
        on(make_data(), {"run", "--out", in_folder("runs")},
           Words{plugins({plugin}), "train.max_steps=1", "callbacks.checkpoint.enabled=false"} +
               kTrainOnly + settings));
  }

  /// Trains for one step with a plug-in's detector.
  Outcome train_detector(const std::string& plugin, const std::string& detector) const {
    const auto config = in_folder("detector.toml");
    write_text(config, "plugins = ['" + plugin + "']\n[data]\nroot = '" + make_data().string() +
                           "'\n[model]\ntype = '" + detector + "'\n[train]\nmax_steps = 1\n");
    return trainer({"run", config, "--out", in_folder("runs")});
  }

  /// Returns a copy of the plug-in `hello`, modified by `change`.
  template <class Change>
  fs::path changed(Change change) const {
    auto bytes = read_text(HELLO_PLUGIN);
    change(bytes);
    const auto file = in_folder("changed.so");
    write_text(file, bytes);
    return file;
  }
};

TEST_F(Plugin, RegistersComponentWithOptions) {
  const auto list = successful(trainer({"list", "--plugin", HELLO_PLUGIN}));
  EXPECT_THAT(list.out, HasSubstr("[callbacks.hello]  greets\n    from " HELLO_PLUGIN "\n"));

  for (const auto& words :
       {Words{"config", "--schema", "--set", plugins({HELLO_PLUGIN})},
        Words{"config", "--schema", "configs/maskrcnn.toml", "--set", plugins({HELLO_PLUGIN})}}) {
    const auto schema = Json::parse(successful(trainer(words)).out);
    EXPECT_EQ(schema["definitions"]["callback.hello"]["properties"]["times"]["minimum"], 1);
    EXPECT_TRUE(schema["definitions"].contains("stage.hello_stage"));
    EXPECT_TRUE(schema["definitions"].contains("detector.hello_detector"));
  }

  const auto resolved = successful(config_with({HELLO_PLUGIN}, {"callbacks.hello.times=5"}));
  EXPECT_THAT(resolved.out, HasSubstr("times = 5"));
  expect_error(config_with({HELLO_PLUGIN}, {"callbacks.hello.times=0"}), 2,
               "callbacks.hello.times");
}

TEST_F(Plugin, IsReportedByList) {
  const auto list = trainer({"list", "--json", "--plugin", HELLO_PLUGIN}).json();
  std::map<std::string, Json> plugin_of;
  for (const auto* kind : {"detectors", "callbacks", "stages"})
    for (const auto& entry : list[kind]) plugin_of[entry["name"]] = entry["plugin"];
  for (const auto* name : {"hello", "hello_stage", "hello_detector"})
    EXPECT_EQ(plugin_of[name], HELLO_PLUGIN);
  for (const auto* name : {"maskrcnn", "log", "decode"}) EXPECT_TRUE(plugin_of[name].is_null());
}

TEST_F(Plugin, IsFoundBesideProgramByName) {
  fs::create_directories(in_folder("bin"));
  fs::create_directories(in_folder("lib/millrace/plugins"));
  const fs::path built = MILLRACE_TRAINER;
  for (const auto* program : {"trainer", "trainer-torch"})
    fs::copy(built.parent_path() / program, in_folder("bin") / program);
  fs::copy(HELLO_PLUGIN, in_folder("lib/millrace/plugins/hello.so"));
  write_text(in_folder("a.toml"), "plugins = ['hello.so']\n[model]\ntype = 'hello_detector'\n");
  const auto resolved = successful(run(in_folder("bin/trainer"), {"config", in_folder("a.toml")}));
  EXPECT_THAT(resolved.out, HasSubstr(in_folder("lib/millrace/plugins/hello.so").string()));
}

TEST_F(Plugin, IsFoundBesideItsConfiguration) {
  fs::create_directory(in_folder("mine"));
  fs::copy(HELLO_PLUGIN, in_folder("mine/hello.so"));
  write_text(in_folder("mine/a.toml"),
             "plugins = ['hello.so']\n[model]\ntype = 'hello_detector'\n");
  write_text(in_folder("mine/b.toml"), "plugins = ['../mine/hello.so']\nbase = 'a.toml'\n");
  write_text(in_folder("heir.toml"), "base = 'mine/a.toml'\n");
  for (const auto* file : {"mine/a.toml", "mine/b.toml", "heir.toml"}) {
    const auto resolved = successful(trainer({"config", in_folder(file).string()}));
    // The path is absolute, so that the run's copy of the configuration works in any folder.
    EXPECT_THAT(resolved.out, HasSubstr("plugins = [\"" + in_folder("mine/hello.so").string()));
  }
}

TEST_F(Plugin, IsFoundFromCurrentFolder) {
  const auto relative = fs::relative(HELLO_PLUGIN, fs::current_path());
  EXPECT_EQ(config_with({relative}).exit_code, 0);
}

TEST_F(Plugin, LoadsOnlyOnce) {
  const auto link = in_folder("link.so");
  fs::create_symlink(HELLO_PLUGIN, link);
  successful(config_with({HELLO_PLUGIN, HELLO_PLUGIN, link}));
}

TEST_F(Plugin, RejectsRegisteredName) {
  for (const auto* part : {"'log'", TAKEN_PLUGIN})
    expect_error(config_with({TAKEN_PLUGIN}), 2, part);
}

TEST_F(Plugin, RejectsSamePluginInTwoFiles) {
  const auto copy = in_folder("copy.so");
  fs::copy(HELLO_PLUGIN, copy);
  for (const auto& part : {std::string(HELLO_PLUGIN), copy.string()})
    expect_error(config_with({HELLO_PLUGIN, copy}), 2, part);
}

TEST_F(Plugin, NamesMissingPlugin) {
  expect_error(config_with({"nosuch.so"}), 2, "nosuch.so");
  expect_error(config_with({"folder/nosuch.so"}), 2, fs::current_path().string());
}

TEST_F(Plugin, RejectsFilesThatAreNotPlugins) {
  const auto text = in_folder("text.so");
  write_text(text, "not an object");
  expect_error(config_with({text}), 2, text.string());
  write_text(text, "");
  expect_error(config_with({text}), 2, text.string());
  expect_error(config_with({in_folder("")}), 2, in_folder("").string());
  expect_error(config_with({OTHER_OBJECT}), 2, "millrace_add_plugin");
}

TEST_F(Plugin, RejectsTruncatedPlugin) {
  const auto size = fs::file_size(HELLO_PLUGIN);
  for (const auto length : {std::uintmax_t{5}, std::uintmax_t{63}, size / 2, size - 1})
    expect_error(config_with({changed([&](std::string& bytes) { bytes.resize(length); })}), 2,
                 in_folder("changed.so").string());
}

TEST_F(Plugin, RejectsPluginForDifferentProcessor) {
  const auto foreign = changed([](std::string& bytes) {
    bytes[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_RISCV);
    bytes[offsetof(Elf64_Ehdr, e_machine) + 1] = 0;
  });
  expect_error(config_with({foreign}), 2, "243");
}

TEST_F(Plugin, RejectsPluginOfDifferentBuild) {
  const auto replaced = [&](const std::string& what, const std::string& by) {
    return changed([&](std::string& bytes) {
      const auto at = bytes.find(what, bytes.find(MILLRACE_ABI));
      ASSERT_NE(at, std::string::npos);
      bytes.replace(at, by.size(), by);
    });
  };
  const auto headers = config_with({replaced(MILLRACE_PUBLIC_HEADERS, "0123456789abcdef")});
  for (const auto* part : {"0123456789abcdef", MILLRACE_PUBLIC_HEADERS})
    expect_error(headers, 2, part);
  const auto torch = config_with({replaced("libtorch " TORCH_VERSION, "libtorch 1")});
  EXPECT_THAT(torch.err, AllOf(HasSubstr("libtorch 1"), HasSubstr("libtorch " TORCH_VERSION)));
}

TEST_F(Plugin, ReportsReasonForLoadFailure) {
  expect_error(config_with({UNDEFINED_PLUGIN}), 2, "millrace::nobody_has_this(double)");
  for (const auto* part : {"an oracle of Delphi", "libnobody_has_this.so"})
    expect_error(config_with({NEEDS_PLUGIN}), 2, part);
  for (const auto* part : {THROWS_PLUGIN, "the licence has expired"})
    expect_error(config_with({THROWS_PLUGIN}), 2, part);
  expect_error(config_with({THROWS_INT_PLUGIN}), 2, THROWS_INT_PLUGIN);
}

TEST_F(Plugin, NamesThrowingCallback) {
  const auto run = train(HELLO_PLUGIN, {"callbacks.hello.times=1"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  const std::string what = "greeted enough";
  for (const auto& part : {std::string("trainer: error: "), std::string("'hello'"),
                           std::string(HELLO_PLUGIN), std::string("after_step"), what})
    EXPECT_THAT(run.err, HasSubstr(part));
  EXPECT_EQ(run.err.find(what), run.err.rfind(what)) << "reported twice: " << run.err;
  EXPECT_THAT(read_text(in_folder("runs/maskrcnn-1/log.txt")), ContainsRegex("error .*" + what));
}

TEST_F(Plugin, NamesFailingComponent) {
  const auto stages = [](const std::string& name) {
    return "data.stages=[{type='read'}, {type='decode'}, {type='" + name +
           "'}, {type='group_by_aspect_ratio', batch_size=4}, {type='pad'}]";
  };
  const auto fails = [](const Outcome& run, const Words& parts) {
    for (const auto& part : parts) expect_error(run, 1, part);
  };
  fails(train(FAULTY_PLUGIN, {"callbacks.faulty_options.enabled=true"}),
        {"'faulty_options'", FAULTY_PLUGIN, "no words"});
  fails(train(FAULTY_PLUGIN, {"callbacks.faulty_factory.enabled=true"}),
        {"'faulty_factory'", FAULTY_PLUGIN, "no parts"});
  fails(train(FAULTY_PLUGIN, {stages("faulty_stage")}),
        {"'faulty_stage'", FAULTY_PLUGIN, "no idea"});
  fails(train_detector(FAULTY_PLUGIN, "faulty_detector"),
        {"'faulty_detector'", FAULTY_PLUGIN, "no news"});
  fails(train_detector(HELLO_PLUGIN, "hello_detector"),
        {"'hello_detector'", HELLO_PLUGIN, "no loss"});
  fails(train(HELLO_PLUGIN, {stages("hello_stage")}),
        {"epoch 0", "'hello_stage'", HELLO_PLUGIN, "no sample is greeted"});
}

TEST_F(Plugin, ExampleWritesEachLineOnceAfterKill) {
  const auto file = in_folder("runs/maskrcnn-1/best.txt");
  const auto command =
      on(make_data(), {"run", "--out", in_folder("runs")},
         kTrainOnly + Words{plugins({HELLO_PLUGIN, MY_CALLBACK_PLUGIN}), "data.short_side=64",
                            "data.max_side=96", "train.max_steps=24", "train.epochs=24",
                            "schedule.warmup=4 steps", "callbacks.hello.times=1000",
                            "callbacks.announce_best.metric=hello/times",
                            "callbacks.checkpoint.every='5 steps'"});
  const auto child = start(MILLRACE_TRAINER, command);
  const auto lines = [&] {
    const auto text = read_text(file);
    return std::ranges::count(text, '\n');
  };
  while (lines() < 13 && waitpid(child, nullptr, WNOHANG) == 0) ::usleep(1'000);
  ::kill(child, SIGKILL);
  ASSERT_EQ(finish(child).exit_code, -1);
  ASSERT_LT(lines(), 24);
  successful(trainer(command + Words{"--resume"}));
  const auto record = read_json(in_folder("runs/maskrcnn-1/record.json"));
  EXPECT_GT(record.at("starts").back().at("from_step").get<int>(), 0);
  std::string expected;
  for (int step = 1; step <= 24; ++step)
    expected += "step " + std::to_string(step) + ": hello/times " + std::to_string(step) + "\n";
  EXPECT_EQ(read_text(file), expected);
}

// A model is data: evaluating one must not run code that its file names.
TEST_F(Plugin, IsNotLoadedBecauseModelNamesIt) {
  successful(train_detector(NOISY_PLUGIN, "noisy"));
  expect_error(trainer({"eval", in_folder("runs/detector-1")}), 2,
               std::string("--set 'plugins=[\"") + NOISY_PLUGIN);
}

}  // namespace
}  // namespace millrace::testing
