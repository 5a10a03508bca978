// trainer-torch: the program with every subcommand. It is started by `trainer`.
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include <filesystem>

#include "millrace/base/process/stop_signals.h"
#include "millrace/cli/libtorch.h"
#include "millrace/cli/program.h"
#include "millrace/dataflow/image/buffer_pool.h"

namespace {

/// Returns the version and folder of the libtorch that this process has loaded.
std::string text_of_libtorch() {
  Dl_info object{};
  if (!::dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &object)) return {};
  const auto folder = std::filesystem::absolute(object.dli_fname).parent_path().parent_path();
  return "\n" + millrace::cli::libtorch_text(folder, TORCH_VERSION);
}

std::string text_of_build() { return text_of_libtorch() + "\n" + millrace::cli::build_facts(); }

}  // namespace

int main(int argc, char** argv) {
  using namespace millrace::cli;
  restore_library_path();
  millrace::hold_stop_signals();
  millrace::survive_file_size_limit();
  millrace::prepare_opencv();
  return *run(argc, argv,
              {add_run,           add_eval,  add_coco_eval, add_predict,    add_report,
               add_sample,        add_init,  add_import,    add_inspect,    add_doctor,
               add_pack,          add_index, add_convert,   add_export,     add_config,
               add_import_config, add_list,  add_bench,     add_serve,      add_check_gpu,
               add_status,        add_diff,  add_study,     add_completion, add_man},
              /*all=*/true, text_of_build);
}
