// A data server in Python: the module's class Server.

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/data_recipe.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/serving/server.h"
#include "python/src/flow/bindings.h"
#include "python/src/flow/flow.h"
#include "python/src/flow/stream.h"
#include "python/src/flow/values.h"

namespace millrace::python {
namespace {

serving::ListenOptions read_listen_options(const std::string& bind,
                                           const std::optional<std::string>& key,
                                           const std::vector<std::string>& allowed, bool insecure) {
  serving::ListenOptions listen{.bind = bind, .keys = {}, .allowed = {}};
  if (key) {
    listen.keys = serving::read_secret_key(*key);
    listen.allowed = serving::read_public_keys(allowed);
    if (listen.allowed.empty())
      throw ConfigError(
          "Server(allow=...): empty, so no consumer could connect; list the consumers' public "
          "keys, "
          "or files or folders of them");
  } else if (bind.starts_with("tcp://") && !serving::is_local(bind) && !insecure) {
    throw ConfigError(fmt::format(
        "Server(bind=...): other machines can reach {}, and without keys any of them could read "
        "the data. Set key and allow (millrace.serving.make_keys), or insecure=True in a trusted "
        "network",
        bind));
  }
  return listen;
}

class Server {
 public:
  Server(const std::string& file, const nb::dict& options, const std::string& bind,
         const std::optional<std::string>& key, const std::vector<std::string>& allowed,
         bool insecure, std::int64_t consumers) {
    try {
      check_process();
      if (consumers < 1) throw ConfigError("Server(consumers=...): expected at least 1");
      const auto given = given_options(options, "Server");
      without_gil([&] {
        const auto listen = read_listen_options(bind, key, allowed, insecure);
        Config complete;
        recipe_ = resolve_data(load_over(file, given), complete);
        recipe_.data.source.clear();  // only for consumers with the same file
        allow_threads(recipe_.data.threads);
        train_ = open_train_data(recipe_.data, recipe_.sources);
        server_ = start_data_server(recipe_.data, recipe_.stages, train_, listen,
                                    static_cast<std::size_t>(consumers));
      });
    } catch (...) {
      raise_in_python();
    }
  }
  ~Server() {
    const nb::gil_scoped_release released;
    server_.reset();
  }

  std::string endpoint() const { return server_->endpoint(); }

  /// Serves until `stop` is called. If `sees_signals`, which is for the main thread only, a
  /// signal's exception also ends it.
  void run(bool sees_signals) {
    std::optional<nb::python_error> raised;
    without_gil([&] {
      check_process();
      const std::unique_lock lock(running_, std::try_to_lock);
      if (!lock) throw Error("this server is already running in another thread");
      server_->run([&] {
        if (is_stopped_) return false;
        if (!sees_signals) return true;
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() == 0) return true;
        raised.emplace();
        return false;
      });
    });
    if (raised) throw nb::python_error(*raised);
  }
  void stop() { is_stopped_ = true; }

 private:
  DataRecipe recipe_;
  TrainData train_;
  std::mutex running_;
  std::atomic<bool> is_stopped_ = false;
  std::unique_ptr<serving::BatchServer> server_;
};

}  // namespace

void add_server(nb::module_& module) {
  nb::class_<Server>(module, "Server")
      .def(nb::init<const std::string&, const nb::dict&, const std::string&,
                    const std::optional<std::string>&, const std::vector<std::string>&, bool,
                    std::int64_t>(),
           nb::arg("file"), nb::arg("options"), nb::arg("bind"), nb::arg("key").none(),
           nb::arg("allow"), nb::arg("insecure"), nb::arg("consumers"))
      .def("run", &Server::run, nb::arg("sees_signals"))
      .def("stop", &Server::stop)
      .def_prop_ro("endpoint", &Server::endpoint);
}

}  // namespace millrace::python
