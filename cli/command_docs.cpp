#include "millrace/cli/command_docs.h"

#include <algorithm>
#include <array>

namespace millrace::cli {
namespace {

constexpr std::array kCommands = {
    CommandDoc{"run", "Train a detector"},
    CommandDoc{"eval", "Detect over the validation split and print the COCO or LVIS figures"},
    CommandDoc{"coco-eval", "Score detections against annotations: the COCO or LVIS figures"},
    CommandDoc{
        "predict",
        "Detect in image and video files: pictures with masks and names, and a COCO results file"},
    CommandDoc{"report",
               "Write one page of one or several runs, or of a study, to draw conclusions from"},
    CommandDoc{"sample", "Make the sample data set: pictures of shapes with exact annotations"},
    CommandDoc{"init", "Write a first configuration for a folder of photos and labels"},
    CommandDoc{"import", "Labels of other tools into COCO's layout (docs/formats.md)"},
    CommandDoc{
        "inspect",
        "Look at what training sees: batches with boxes and masks, photos, figures, on one page"},
    CommandDoc{"doctor",
               "Check a data set, say what is wrong with it; exit code 1: training would be wrong"},
    CommandDoc{"pack", "Put the images and annotations of a split into a record store"},
    CommandDoc{"index", "Make a record store of shards, which stay where they are"},
    CommandDoc{"convert", "Weights into another format (.safetensors, .pth, .npz) and other names"},
    CommandDoc{"export", "A trained model as an ONNX file, with a certificate"},
    CommandDoc{"config",
               "Print the resolved configuration and where each value came from; of a "
               "model.safetensors, what it is"},
    CommandDoc{"import-config",
               "Turn a recipe of detectron2 (.yaml) or MMDetection (.py) into a configuration"},
    CommandDoc{"list", "Show every detector, callback and stage with its options"},
    CommandDoc{"bench", "Measure the parts of a training run"},
    CommandDoc{"serve", "Make training batches for other processes and machines"},
    CommandDoc{"check-gpu",
               "Show the GPU, its driver and libraries, and run the tests that need a GPU"},
    CommandDoc{"status", "Tell how a run is: its ranks and data servers, also while they hang"},
    CommandDoc{"diff", "Tell what differs between two runs, and whether it decides results"},
    CommandDoc{"study",
               "Train variants of a configuration with several seeds, and say what differs"},
    CommandDoc{"completion",
               "Print what makes a shell complete commands, options, files and keys after --set"},
    CommandDoc{"man", "Print the manual page, for `man -l -`"}};

}  // namespace

std::span<const CommandDoc> command_docs() { return kCommands; }

std::string doc_of(std::string_view command) {
  return std::ranges::find(kCommands, command, &CommandDoc::name)->doc;
}

}  // namespace millrace::cli
