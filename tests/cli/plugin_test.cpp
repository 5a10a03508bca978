// Plug-ins: what they register is known; what cannot be loaded is refused with its reason.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using Plugin = Trainer;

std::vector<std::string> config_with(const std::string& plugin) {
  return {"config", "configs/maskrcnn.toml", "--set", "plugins=[\"" + plugin + "\"]"};
}

TEST_F(Plugin, BringsAComponentWithItsOptions) {
  const auto list = trainer({"list", "--plugin", HELLO_PLUGIN});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("[callbacks.hello]"));

  auto arguments = config_with(HELLO_PLUGIN);
  arguments.insert(arguments.end(), {"--set", "callbacks.hello.times=5"});
  const auto resolved = trainer(arguments);
  EXPECT_EQ(resolved.exit_code, 0) << resolved.err;
  EXPECT_THAT(resolved.out, HasSubstr("times = 5"));

  arguments.back() = "callbacks.hello.times=0";
  expect_error(trainer(arguments), 2, "out of range");
}

TEST_F(Plugin, ThatTakesATakenNameIsRefused) {
  expect_error(trainer(config_with(TAKEN_PLUGIN)), 2, "the callback 'log' is registered twice");
}

TEST_F(Plugin, ThatIsNotThereIsNamed) {
  expect_error(trainer(config_with("nosuch.so")), 2, "cannot load the plug-in 'nosuch.so'");
}

TEST_F(Plugin, ThatIsNoSharedObjectIsRefused) {
  const auto file = in_folder("text.so");
  write_text(file, "not an object");
  expect_error(trainer(config_with(file.string())), 2, "cannot load the plug-in");
}

}  // namespace
}  // namespace millrace::testing
