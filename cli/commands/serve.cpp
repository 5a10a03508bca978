// trainer serve: makes batches for trainers on other machines or processes.
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/serving/server.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace::cli {
namespace {

struct ServeArguments {
  ConfigArguments config;
  std::string bind = serving::ListenOptions{}.bind;
  std::string key;
  std::vector<std::string> allowed;
  bool insecure = false;
  std::size_t most_consumers = serving::ServerOptions{}.most_consumers;
  std::string keygen;
};

serving::ListenOptions read_listen_options(const ServeArguments& arguments) {
  serving::ListenOptions listen{.bind = arguments.bind, .keys = {}, .allowed = {}};
  if (!arguments.key.empty()) {
    listen.keys = serving::read_secret_key(arguments.key);
    listen.allowed = serving::read_public_keys(arguments.allowed);
    if (listen.allowed.empty())
      throw ConfigError(
          "--key: no consumer is allowed; give the consumers' public keys with --allow FILE.pub or "
          "a folder of them");
  } else if (arguments.bind.starts_with("tcp://") && !serving::is_local(arguments.bind) &&
             !arguments.insecure) {
    throw ConfigError(fmt::format(
        "--bind {}: other machines can connect and, without keys, read the data. Give --key and "
        "--allow (`trainer serve --keygen NAME` makes keys), or --insecure in a trusted network",
        arguments.bind));
  }
  return listen;
}

int serve(const ServeArguments& arguments) {
  const ExitAtSignal at_signal(kDone, "ended before anything was served");
  survive_broken_pipes();
  release_stop_signals();
  if (!arguments.keygen.empty()) {
    serving::make_keys(arguments.keygen);
    print_formatted(
        "{0}.key: secret key, only for this side\n{0}.pub: public key, for the other side\n",
        arguments.keygen);
    suggest_next("trainer serve CONFIG --key {}.key --allow TRAINER.pub --bind 'tcp://*:5555'",
                 arguments.keygen);
    return kDone;
  }
  if (arguments.config.file.empty()) throw ConfigError("CONFIG is required without --keygen");
  const auto listen = read_listen_options(arguments);
  auto recipe = arguments.config.load();
  recipe.data.source.clear();  // meant for consumers with the same file
  const Threads threads(recipe.train.threads, recipe.data.threads);
  const auto train = open_train_data(recipe.data, recipe.sources);

  const StopSignals signals;
  const auto server =
      start_data_server(recipe.data, recipe.stages, train, listen, arguments.most_consumers);
  log_info("serving {} samples at {}, {}", train.source->size(), server->endpoint(),
           listen.keys                      ? fmt::format("to {} keys", listen.allowed.size())
           : serving::is_local(listen.bind) ? "to this machine only"
                                            : "to anyone, without keys");
  log_info("next, for each trainer: trainer run CONFIG --set 'data.source=[\"{}\"]'",
           server->endpoint());
  server->run([] { return StopSignals::received().empty(); });
  log_info("stopped by {} after {} batches", StopSignals::received(), server->report().batches);
  log_info("next: trainers wait up to data.source_timeout; the same command serves them again");
  ExitAtSignal::work_is_done(kDone);
  return kDone;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "serve", serve, /*handles_signals=*/true);
  arguments.config.add_to(command)->required(false);
  add_option(command, "--bind", arguments.bind, "ENDPOINT",
             "endpoint to listen at: tcp://ADDRESS:PORT or ipc://FILE")
      ->capture_default_str();
  auto* key = add_option(command, "--key", arguments.key, "FILE.key", "secret key of the server");
  add_option(command, "--allow", arguments.allowed, "FILE.pub",
             "public key of a consumer, or a folder of public keys; may be repeated")
      ->needs(key)
      ->allow_extra_args(false);
  command
      .add_flag("--insecure", arguments.insecure,
                "serve other machines without keys; any of them can read the data")
      ->excludes(key);
  command
      .add_option("--consumers", arguments.most_consumers,
                  "maximum number of concurrent consumers; each has its own data flow")
      ->capture_default_str()
      ->check(positive());
  add_option(command, "--keygen", arguments.keygen, "NAME",
             "name of a pair of keys to make, NAME.key and NAME.pub, without serving");
  add_examples(command, {"trainer serve configs/maskrcnn.toml",
                         "trainer run configs/maskrcnn.toml --set "
                         "'data.source=[\"tcp://127.0.0.1:5555\"]'",
                         "trainer serve --keygen server",
                         "trainer serve configs/maskrcnn.toml --bind 'tcp://*:5555' --key "
                         "server.key --allow trainer.pub"});
}

}  // namespace millrace::cli
