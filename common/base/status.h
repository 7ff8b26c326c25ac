/**
 * @file status.h
 * @brief Status codes, and the one-line message that describes a failure.
 *
 * A library function returns a status: STATUS_OK (0) or one of the negative
 * codes below. It never exits and never prints. Where a caller needs more than
 * the code (which file, which field, which size), the function also takes a
 * `struct error *`, which may be NULL, and writes a one-line message into it.
 * main(), benches and tests print that message and exit.
 */
#ifndef WARPBOOK_COMMON_BASE_STATUS_H_
#define WARPBOOK_COMMON_BASE_STATUS_H_

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The compiler warns where the result of such a function is ignored. */
#define MUST_CHECK __attribute__((warn_unused_result))

/** Every status: name, value, message. */
#define STATUS_LIST(X)                                     \
    X(STATUS_OK, 0, "success")                             \
    X(STATUS_INVALID_ARGUMENT, -1, "invalid argument")     \
    X(STATUS_OUT_OF_MEMORY, -2, "out of memory")           \
    X(STATUS_NOT_FOUND, -3, "not found")                   \
    X(STATUS_IO, -4, "input or output failed")             \
    X(STATUS_TRUNCATED, -5, "file ends too early")         \
    X(STATUS_BAD_FORMAT, -6, "not in the expected format") \
    X(STATUS_OVERFLOW, -7, "size overflows")               \
    X(STATUS_MISMATCH, -8, "sizes do not agree")           \
    X(STATUS_BAD_UTF8, -9, "text is not valid UTF-8")      \
    X(STATUS_TOO_LONG, -10, "too long")                    \
    X(STATUS_UNSUPPORTED, -11, "not supported")            \
    X(STATUS_NO_DEVICE, -12, "no usable GPU")              \
    X(STATUS_DEVICE, -13, "the GPU reported an error")     \
    X(STATUS_INTERRUPTED, -14, "interrupted")

enum status {
#define STATUS_ENUMERATOR(name, value, message) name = value,
    STATUS_LIST(STATUS_ENUMERATOR)
#undef STATUS_ENUMERATOR
};

/** One failure, described in one line. Zero-initialise before use. */
struct error {
    enum status status;
    char message[512]; /**< NUL-terminated, no newline, valid UTF-8 where its parts were. */
};

/**
 * Evaluates a call, and returns from the enclosing function with its status unless that is
 * STATUS_OK. Where something must be cleaned up, the function that uses TRY is an inner one and
 * its caller cleans up.
 */
#define TRY(call)                     \
    do {                              \
        enum status status_ = (call); \
        if (status_ != STATUS_OK) {   \
            return status_;           \
        }                             \
    } while (0)

/** @return name of @p status as spelt in the source, "STATUS_UNKNOWN" for a foreign value. */
const char *status_name(enum status status);

/** @return one-line message for @p status. Never NULL. */
const char *status_message(enum status status);

/**
 * @brief Records a failure and returns its status, so that `return error_set(...)` reads well.
 *
 * Control characters in the formatted text become '?', so that a hostile file
 * name cannot fake a second line. Text beyond the buffer is cut.
 *
 * @param error  where to record, or NULL
 * @param status the code, not STATUS_OK
 * @param format printf format of the line, without newline
 * @return @p status
 */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** As error_set() with a va_list. */
enum status error_set_va(struct error *error, enum status status, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/**
 * @brief Puts "PREFIX: " before the recorded message; does nothing if @p error is NULL.
 * @return @p status
 */
enum status error_prefix(struct error *error, enum status status, const char *prefix);

/** @return the recorded message, or the general message of @p status if none was recorded. */
const char *error_text(const struct error *error, enum status status);

#ifdef __cplusplus
}
#endif

#endif
