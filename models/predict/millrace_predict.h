/* Detects with a model trained by Millrace, from C or any language that calls C:
 * libmillrace_predict.
 *
 *   millrace_predictor* predictor = NULL;
 *   millrace_result* result = NULL;
 *   if (millrace_predict_open("model.safetensors", NULL, &predictor) != MILLRACE_OK ||
 *       millrace_predict_file(predictor, "photo.jpg", &result) != MILLRACE_OK)
 *     fprintf(stderr, "%s\n", millrace_predict_error());
 *
 * Every function that can fail returns a status; millrace_predict_error() then returns a sentence
 * with the problem, its place and a remedy. A NULL argument or closed handle is an error, not a
 * crash. Thread-safe; calls of one predictor run one after the other.
 *
 * Symbols have the version MILLRACE_PREDICT_1: declarations in this file keep their meaning; later
 * versions only add to them. */
#ifndef MILLRACE_PREDICT_H
#define MILLRACE_PREDICT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Handles. They are checked and never dereferenced; a closed handle is never reused. */
typedef struct millrace_predictor millrace_predictor;
typedef struct millrace_result millrace_result; /* the detections in one image */

typedef enum millrace_status {
  MILLRACE_OK = 0,
  MILLRACE_BAD_ARGUMENT = 1, /* NULL, a closed handle, a number out of range */
  MILLRACE_BAD_MODEL = 2,    /* an unusable model file */
  MILLRACE_BAD_IMAGE = 3,    /* an unusable image */
  MILLRACE_FAILED = 4        /* anything else, such as too little memory */
} millrace_status;

/* Returns the error message of this thread's last failed call; "" if none failed. Valid until the
 * thread's next failed call. */
const char* millrace_predict_error(void);

/* Options; all zeros are the defaults. */
typedef struct millrace_predict_options {
  int32_t threads; /* compute threads; 0 = all CPUs available to the process */
  int32_t bf16;    /* 1 = convolutions and matrix products in bfloat16, 0 = in float */
} millrace_predict_options;

/* Opens a model.safetensors written by Millrace, or a checkpoint folder. `options` may be NULL. */
millrace_status millrace_predict_open(const char* model, const millrace_predict_options* options,
                                      millrace_predictor** predictor);
/* Closes a predictor. Its running calls finish, and results stay valid. */
millrace_status millrace_predict_close(millrace_predictor* predictor);

/* Returns the number of classes; -1 for an error. */
int32_t millrace_predict_class_count(const millrace_predictor* predictor);
/* Returns the name of class 0 .. count - 1, valid until the predictor is closed; NULL for an
 * error. */
const char* millrace_predict_class_name(const millrace_predictor* predictor, int32_t label);

typedef enum millrace_image_kind {
  MILLRACE_FILE = 0,  /* `data` is the path of an image file */
  MILLRACE_BYTES = 1, /* `data` has the `size` bytes of such a file */
  MILLRACE_RGB = 2,   /* `data` has pixels in `size` bytes of memory, three bytes each */
  MILLRACE_BGR = 3
} millrace_image_kind;

/* An image: JPEG, PNG, WebP or TIFF, or pixels. Its memory is borrowed for the call. */
typedef struct millrace_image {
  int32_t kind;          /* a millrace_image_kind */
  int32_t width, height; /* of pixels */
  const void* data;
  size_t size;   /* bytes of `data`, unless it is a path */
  size_t stride; /* of pixels: bytes from row to row; 0 = 3 * width */
} millrace_image;

/* Detects in an image file. */
millrace_status millrace_predict_file(const millrace_predictor* predictor, const char* image,
                                      millrace_result** result);
/* Detects in `count` images at once, 65536 at most, and writes `count` handles; none after an
 * error. */
millrace_status millrace_predict_images(const millrace_predictor* predictor,
                                        const millrace_image* images, size_t count,
                                        millrace_result** results);

typedef struct millrace_object {
  float x1, y1, x2, y2; /* box in pixels of the image: x to the right, y down */
  float score;          /* 0 .. 1 */
  int32_t label;        /* 0 .. class count - 1 */
  int32_t has_mask;     /* 1 or 0 */
} millrace_object;

/* Returns the number of objects; -1 for an error. */
int32_t millrace_result_count(const millrace_result* result);
/* Writes width and height of the image in pixels. */
millrace_status millrace_result_size(const millrace_result* result, int32_t* width,
                                     int32_t* height);
/* Writes an object; object 0 has the highest score. */
millrace_status millrace_result_object(const millrace_result* result, int32_t index,
                                       millrace_object* object);
/* Writes the mask of an object as a bitmap of width * height bytes, which `size` must equal: row by
 * row, 1 inside. */
millrace_status millrace_result_bitmap(const millrace_result* result, int32_t index,
                                       uint8_t* bitmap, size_t size);
/* Returns the mask of an object as COCO's compressed run lengths (`counts` of a segmentation),
 * valid until the result is closed; NULL for an error. */
const char* millrace_result_counts(const millrace_result* result, int32_t index);
millrace_status millrace_result_close(millrace_result* result);

#ifdef __cplusplus
}
#endif

#endif
