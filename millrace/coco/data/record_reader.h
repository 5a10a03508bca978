// The sections of an annotation file, record by record. One thread.
#pragma once

#include <functional>

#include "millrace/coco/data/json.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Reads a whole file. `on_annotations` gets the array of the annotations, which it has to go
/// through. Throws Error as `read_dataset`, for what can be said of a record by itself.
void read_sections(JsonText& text, Records& records,
                   const std::function<void(json::value)>& on_annotations);

/// Appends an annotation that begins at `at`. Throws Wrong.
void read_annotation(json::object fields, const char* at, Records& records);

}  // namespace millrace::coco
