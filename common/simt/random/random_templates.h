/**
 * @file random_templates.h
 * @brief What random expressions are made of; random_expression.h has the notation.
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_TEMPLATES_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_TEMPLATES_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct random_template {
    char type;        /**< of the result */
    const char *text; /**< its value has exactly that type */
};

/** Expressions without side effects, that any lane may evaluate at any time. */
extern const struct random_template random_templates[];
extern const size_t random_template_count;

/** Expressions that the lanes of $M evaluate together. */
extern const struct random_template random_warp_templates[];
extern const size_t random_warp_template_count;

/** The same for complete warps only. */
extern const struct random_template random_full_warp_templates[];
extern const size_t random_full_warp_template_count;

#ifdef __cplusplus
}
#endif

#endif
