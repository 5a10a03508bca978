#include "millrace/cli/command_docs.h"

#include <algorithm>
#include <array>

namespace millrace::cli {
namespace {

constexpr std::array kCommands = {
    CommandSummary{"run", "Train a detector"},
    CommandSummary{"eval", "Detect over the validation split and print the COCO or LVIS figures"},
    CommandSummary{"coco-eval", "Score detections against annotations: the COCO or LVIS figures"},
    CommandSummary{
        "predict",
        "Detect in image and video files: pictures with masks and names, and a COCO results file"},
    CommandSummary{
        "report", "Write one page of one or several runs, or of a study, to draw conclusions from"},
    CommandSummary{"sample", "Make the sample data set: pictures of shapes with exact annotations"},
    CommandSummary{"init", "Write a first configuration for a folder of photos and labels"},
    CommandSummary{"import", "Labels of other tools into COCO's layout (docs/formats.md)"},
    CommandSummary{
        "inspect",
        "Look at what training sees: batches with boxes and masks, photos, figures, on one page"},
    CommandSummary{
        "doctor",
        "Check a data set, say what is wrong with it; exit code 1: training would be wrong"},
    CommandSummary{"pack", "Put the images and annotations of a split into a record store"},
    CommandSummary{"index", "Make a record store of shards, which stay where they are"},
    CommandSummary{"convert",
                   "Weights into another format (.safetensors, .pth, .npz) and other names"},
    CommandSummary{"export", "A trained model as an ONNX file, with a certificate"},
    CommandSummary{"config",
                   "Print the resolved configuration and where each value came from; of a "
                   "model.safetensors, what it is"},
    CommandSummary{"import-config",
                   "Turn a recipe of detectron2 (.yaml) or MMDetection (.py) into a configuration"},
    CommandSummary{"list", "Show every detector, callback and stage with its options"},
    CommandSummary{"bench", "Measure the parts of a training run"},
    CommandSummary{"serve", "Make training batches for other processes and machines"},
    CommandSummary{"check-gpu",
                   "Show the GPU, its driver and libraries, and run the tests that need a GPU"},
    CommandSummary{"status", "Tell how a run is: its ranks and data servers, also while they hang"},
    CommandSummary{"diff", "Tell what differs between two runs, and whether it decides results"},
    CommandSummary{"study",
                   "Train variants of a configuration with several seeds, and say what differs"},
    CommandSummary{
        "completion",
        "Print what makes a shell complete commands, options, files and keys after --set"},
    CommandSummary{"man", "Print the manual page, for `man -l -`"}};

}  // namespace

std::span<const CommandSummary> command_docs() { return kCommands; }

std::string doc_of(std::string_view command) {
  return std::ranges::find(kCommands, command, &CommandSummary::name)->doc;
}

}  // namespace millrace::cli
