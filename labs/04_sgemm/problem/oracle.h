/**
 * @file oracle.h
 * @brief Random problems of lab 04 with the right results, for its tests, its bench and the grader;
 *        on the host.
 */
#ifndef WARPBOOK_LABS_04_SGEMM_PROBLEM_ORACLE_H_
#define WARPBOOK_LABS_04_SGEMM_PROBLEM_ORACLE_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "labs/04_sgemm/sgemm.h"

struct sgemm_shape {
    size_t M, N, K;
};

struct sgemm_variant {
    enum sgemm_form form;
    float alpha, beta;
    size_t skew; /**< floats that every pointer is past a 256-byte boundary */
};

/** How the values of A, B and C are drawn. */
enum sgemm_values {
    SGEMM_ROWS,   /**< each row has an offset and a scale of its own, see rng_fill_bell_rows() */
    SGEMM_NORMAL, /**< mean 0, standard deviation 1 */
    SGEMM_UNIFORM /**< in [-1, 1): quick to draw, mean square 1/3 */
};

/** Host copies of one problem, and rows of its result. */
struct sgemm_data {
    struct sgemm_shape shape;
    struct sgemm_variant variant;
    enum sgemm_values values;
    float *A, *B, *C; /**< (M, K); B as the form has it; (M, N) before the call, NULL with beta 0 */
    size_t rows;      /**< that are checked */
    size_t *row;      /**< (rows) which ones, in no order; all: 0 to M - 1 */
    double *want;     /**< (rows, N) */
};

/** To check all rows. */
#define SGEMM_ALL_ROWS SIZE_MAX

/**
 * @brief Draws the operands and calculates results, in double.
 * @param most rows to check: the first, the last and random ones between; or all if there are no
 *             more, or SGEMM_ALL_ROWS
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status sgemm_data_create(struct sgemm_data *data, struct sgemm_shape shape,
                                         struct sgemm_variant variant, enum sgemm_values values,
                                         size_t most, struct rng *rng, struct error *error);

/** Frees the operands alone, once they are on the device; results can still be checked. */
void sgemm_data_free_operands(struct sgemm_data *data);

/** Frees; a zero-initialised one is allowed. */
void sgemm_data_free(struct sgemm_data *data);

/**
 * @brief Compares one of the rows that are checked.
 * @param i    which one: row data->row[i] of the result
 * @param got  host, (N)
 * @param text receives what is wrong: "index [row, column]: got ..."
 */
bool sgemm_check_row(const struct sgemm_data *data, size_t i, const float *got, char *text,
                     size_t size);

/** Compares the whole result. @p data has all rows. @param got host, (M, N) */
bool sgemm_check(const struct sgemm_data *data, const float *got, char *text, size_t size);

/** FLOPs of a shape, and bytes of each operand once: no kernel can move less. */
double sgemm_flops(struct sgemm_shape shape);
double sgemm_bytes(struct sgemm_shape shape);

#endif
