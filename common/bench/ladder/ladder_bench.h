/**
 * @file ladder_bench.h
 * @brief The bench of a ladder of GPU kernels: a lab fills in a table, this is the program.
 *
 * The driver reads the flags, opens the GPU and cuBLAS, checks each step before it times it, shows
 * progress, prints one table for each shape, appends the records, draws the roofline, runs the
 * lab's further parts and reports failures. A lab brings its shapes, its problem (labs/NN/problem),
 * FLOPs and bytes, columns, titles and peer: labs/04_sgemm/bench/bench.c is a short example.
 */
#ifndef WARPBOOK_COMMON_BENCH_LADDER_LADDER_BENCH_H_
#define WARPBOOK_COMMON_BENCH_LADDER_LADDER_BENCH_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/flags.h"
#include "common/base/status.h"
#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/roofline.h"
#include "common/device/cublas.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The command line and the GPU: main() sets options, flags set what they name, the driver the
 * rest. */
struct ladder_setup {
    const char *shape_text; /**< --shape, or NULL: the default list */
    const char *step;       /**< --step, the only one to measure, however long it takes, or NULL */
    const char *plot;       /**< --plot, SVG file of the last shape's roofline, or NULL */
    bool all;               /**< --all: also steps that take long */
    bool quick;             /**< --quick */
    bool why;               /**< --why: what limits each step; a step named alone says so, too */
    bool first;             /**< --first: only the ladder, on the first shape of its list */
    void *options;          /**< variables of the lab's own flags */
    struct device_properties gpu;
    struct roofline roofs; /**< zero unless the bench needs them */
    struct cublas *cublas; /**< NULL where it is not installed, or not the peer */
    char cublas_name[64];
};

/** The common flags, for the lab's table of flags. @param s struct ladder_setup @param what "M,N,K"
 */
#define LADDER_FLAG_SHAPE(s, what) \
    { "shape", 's', FLAG_STRING, &(s)->shape_text, what, "only the ladder, on this shape" }
#define LADDER_FLAG_STEP(s) \
    { "step", 0, FLAG_STRING, &(s)->step, "NAME", "only this step of the ladder" }
#define LADDER_FLAG_PLOT(s) \
    { "plot", 'p', FLAG_STRING, &(s)->plot, "FILE", "write the last shape's roofline as SVG" }
#define LADDER_FLAG_ALL(s) \
    { "all", 'a', FLAG_SWITCH, &(s)->all, NULL, "also steps that take seconds a call" }
#define LADDER_FLAG_QUICK(s) \
    { "quick", 'q', FLAG_SWITCH, &(s)->quick, NULL, "fewer shapes, shorter runs" }

enum { LADDER_SIZES = 4 };

/**
 * Defines step_name(), a bench_step_name, for a lab's ladder.
 * @param ladder function that receives the number of steps and returns an array; each has a name
 */
#define LADDER_STEP_NAME(ladder)                          \
    static const char *step_name(size_t i) {              \
        size_t count = 0;                                 \
        (void)ladder(&count);                             \
        return i < count ? ladder(&count)[i].name : NULL; \
    }

/** What one table is about. The lab says what each size is; the first one counts rows. */
struct ladder_shape {
    size_t sizes[LADDER_SIZES];
    const char *name;    /**< as a model has it, or NULL */
    int op, dtype, form; /**< the lab's own enums; 0 where it has none */
};

/** Initialises one from its sizes. */
#define LADDER_SHAPE(...)        \
    {                            \
        .sizes = { __VA_ARGS__ } \
    }

struct ladder_shapes {
    const struct ladder_shape *list;
    size_t count;
};

/** Initialises a struct ladder_shapes from an array. */
#define LADDER_SHAPES(array) \
    { array, sizeof(array) / sizeof *(array) }

/** How a table and its records describe a shape. */
struct ladder_text {
    char title[200];      /**< line above the table */
    char plot_title[128]; /**< of the picture */
    char shape[96];       /**< of the record: "512x512x512" */
    const char *op;       /**< of the record: "sgemm" */
    const char *dtype;    /**< of the record: "fp32" */
};

/** What a column shows of a row that was measured; "–" where there is no such number. */
enum ladder_figure {
    LADDER_MS,              /**< median of a call */
    LADDER_GFLOP_PER_S,     /**< of the shape's FLOPs */
    LADDER_TFLOP_PER_S,     /**< the same in TFLOP/s */
    LADDER_GB_PER_S,        /**< of the shape's bytes */
    LADDER_PERCENT_OF_PEER, /**< speed relative to the peer: "45.6%" */
    LADDER_SPEED_OF_PEER,   /**< the same as a factor: "0.46x" */
    LADDER_TIME_OF_PEER,    /**< time relative to the peer's: "2.19x" */
    LADDER_ROOFLINE,        /**< share of what both roofs allow */
    LADDER_PEAK,            /**< share of the fp32 peak at the clock the GPU had */
    LADDER_STEP_UP,         /**< speed relative to the row before */
    LADDER_IN_ALL,          /**< speed relative to the first row; of that one a dash */
    LADDER_SPEEDUP,         /**< the same; of the first row "1.00x" */
    LADDER_OWN,             /**< the lab's own, see struct ladder_bench */
    LADDER_NONE             /**< always "–" */
};

struct ladder_column {
    enum ladder_figure figure;
    int width; /**< without the space before it */
    const char *title;
};

/** When the peer is timed. */
enum ladder_peer_order {
    LADDER_PEER_AFTER_EACH_STEP,
    LADDER_PEER_BEFORE_STEPS,
    LADDER_PEER_AFTER_STEPS
};

/** What every step is compared with; run NULL: nothing. */
struct ladder_peer {
    device_bench_function *run;                    /**< its argument is the problem */
    bool (*has)(const struct ladder_shape *shape); /**< whether a table has it; NULL: all have */
    enum ladder_peer_order order;
    bool cublas;      /**< it calls setup->cublas: left out where that is not installed */
    const char *name; /**< in records; NULL: cuBLAS's name and version */
    const char *row;  /**< "(copy)": it has a row above the steps, with its rates; or NULL */
    bool in_title;    /**< "; the NAME: 0.1234 ms" follows the title; not after each step */
};

/** A problem of one shape on the GPU. The driver keeps its memory, zeroed before create. */
struct ladder_problem {
    size_t bytes; /**< sizeof the lab's struct */
    enum status (*create)(void *problem, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error);
    void (*free)(void *problem); /**< also of one whose create failed */
    /** Puts a step's work on the stream. @param rows at most the shape's: only the first ones */
    enum status (*run)(void *problem, size_t step, size_t rows, device_stream stream,
                       struct error *error);
    /** Runs a step once and compares; @p wrong receives what is wrong, or "". */
    enum status (*check)(void *problem, size_t step, char *wrong, size_t size, struct error *error);
    /** LADDER_OWN's figure of a step, taken after the check; NULL: there is none. */
    enum status (*own)(void *problem, size_t step, double *value, struct error *error);
};

/** Initialises one from the lab's struct and functions, for a struct ladder_bench. */
#define LADDER_PROBLEM(type, create_, free_, run_, check_) \
    { .bytes = sizeof(type), .create = create_, .free = free_, .run = run_, .check = check_ }

/** Whether the ladder is run, and the parts after it. */
enum ladder_scope { LADDER_AND_PARTS, LADDER_ALONE, LADDER_PARTS_ALONE };

/** A further part of the bench: prints a table and appends its records. */
typedef enum status ladder_part(const struct ladder_setup *setup, struct error *error);

/** Sets columns of a struct ladder_bench to an array. */
#define LADDER_COLUMNS(array) .columns = array, .columns_count = sizeof(array) / sizeof *(array)

/** Sets parts of a struct ladder_bench to these functions. */
#define LADDER_PARTS(...)                         \
    .parts = (ladder_part *const[]){__VA_ARGS__}, \
    .parts_count = sizeof((ladder_part *const[]){__VA_ARGS__}) / sizeof(ladder_part *)

/** A lab's bench. What may be NULL says so. One of whole models has parts alone: no step. */
struct ladder_bench {
    const char *lab;                /**< "04_sgemm" */
    const char *subject;            /**< WARPBOOK_SUBJECT; NULL: the head line does not name it */
    const char *summary, *epilogue; /**< of --help */

    /** Reads what the lab's own flags say; NULL: nothing. Called first. */
    enum status (*check_options)(struct ladder_setup *setup, struct error *error);
    /** Does what a flag asks for instead of the bench, without a GPU; false: nothing. May be NULL.
     */
    bool (*instead)(const struct ladder_setup *setup);
    /** Does what needs the GPU before anything is printed, setup->gpu is known. May be NULL. */
    enum status (*prepare)(struct ladder_setup *setup, struct error *error);
    /** NULL: the ladder alone with --shape or --step, else all. */
    enum ladder_scope (*scope)(const struct ladder_setup *setup);

    /** On a GPU, there with --quick, on simt, there with --quick. */
    struct ladder_shapes shapes[4];
    /** Reads setup->shape_text; see ladder_parse_sizes(). */
    enum status (*parse_shape)(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error);
    /**
     * Is there memory for a shape, and on simt the time? See ladder_check_memory(). Its failure is
     * the program's with --shape; a default shape is left out. Called before memory is taken.
     */
    enum status (*check_shape)(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error);
    /** Tables of each shape, 0 counts as 1; table() makes @p shape the i-th, false: left out. */
    size_t tables;
    bool (*table)(const struct ladder_setup *setup, struct ladder_shape *shape, size_t i);

    bench_step_name *step; /**< NULL: there is no ladder, and nothing from shapes to columns */
    /** Whether a shape's table has the step, unless --step names it; NULL: all. */
    bool (*has_step)(const struct ladder_shape *shape, size_t step);
    struct ladder_problem problem;
    struct ladder_peer peer;
    double seconds, quick_seconds; /**< that each step is measured at least; on a GPU */
    bool flush_on_simt;            /**< L2 is flushed there, too, not only on a GPU */

    double (*flops)(const struct ladder_shape *shape); /**< of one call */
    double (*bytes)(const struct ladder_shape *shape); /**< the least that must move */
    void (*describe)(const struct ladder_setup *setup, const struct ladder_shape *shape,
                     struct ladder_text *text);
    int name_width; /**< of the first column */
    const struct ladder_column *columns;
    size_t columns_count;
    /** Columns of a shape's table, columns_count of them; NULL: all tables have `columns`. */
    const struct ladder_column *(*columns_of)(const struct ladder_shape *shape);
    const char *own_name; /**< of LADDER_OWN's figure in records, or NULL */

    bool needs_roofs; /**< for LADDER_ROOFLINE, --plot or the conditions */
    /** What follows the head line, "labs: measured on ...", before its line ends. May be NULL. */
    const char *(*conditions)(const struct ladder_setup *setup, char *text, size_t size);

    ladder_part *const *parts; /**< run after the ladder, in this order */
    size_t parts_count;
};

/**
 * @brief All of a bench's main(), see bench_program_main().
 * @param flags the lab's flags in the order of --help, LADDER_FLAG_SHAPE() and so on among them;
 *              the driver adds those that all labs have, --why and --first
 * @return the exit status: 0; 1 after one line on standard error, also when a step is wrong
 */
int ladder_bench_main(const struct ladder_bench *bench, const struct flag *flags, size_t count,
                      struct ladder_setup *setup, int argc, char **argv);

/**
 * @brief Reads the first sizes of a shape, "64,48,32".
 * @param letters "M,N,K": as many sizes as it has letters
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT for anything else than numbers from 1 on
 */
MUST_CHECK enum status ladder_parse_sizes(const char *text, const char *letters,
                                          struct ladder_shape *shape, struct error *error);

/**
 * @brief Is there as much device memory? On simt it is the host's: at most 1 GiB.
 * @param sizes of the shape, for the message
 * @return STATUS_OK, or STATUS_OUT_OF_MEMORY with both numbers
 */
MUST_CHECK enum status ladder_check_memory(const struct ladder_setup *setup,
                                           const struct ladder_shape *shape, size_t sizes,
                                           size_t bytes, struct error *error);

/**
 * @brief On simt, are a shape's M * N * K products few enough? For a shape of M, N, K.
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with both numbers
 */
MUST_CHECK enum status ladder_check_products(const struct ladder_setup *setup,
                                             const struct ladder_shape *shape, double most,
                                             struct error *error);

/**
 * @brief Reads one of some names, such as a --dtype.
 * @param name   returns the i-th name, or NULL when there are no more
 * @param wanted how the message begins: "--dtype is 'fp32', 'fp16' or 'bf16'"
 */
MUST_CHECK enum status ladder_parse_name(const char *text, const char *(*name)(size_t i),
                                         const char *wanted, int *value, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
