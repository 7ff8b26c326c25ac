/**
 * @file check.h
 * @brief For tests of the parser: checks that a parsed module holds together (every index is inside
 *        its table), and counts instructions without parsing.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_TESTING_CHECK_H_
#define WARPBOOK_COMMON_SIMT_PTX_TESTING_CHECK_H_

#include <stddef.h>

#include "common/simt/ptx/ptx.h"

/** @return NULL, or a description of the module's error. */
const char *ptx_check(const struct ptx_module *module);

/*
 * Counts instructions in PTX text without parsing it, so that the parser can be compared
 *        with something else than itself.
 */

enum { PTX_TALLY_LIMIT = 256 };

/** How often each base opcode occurs. */
struct ptx_tally {
    char names[PTX_TALLY_LIMIT][16];
    size_t counts[PTX_TALLY_LIMIT];
    size_t used;
    size_t without_line; /**< instructions whose last .loc names line 0, or that have none */
};

/** Counts one instruction; the name is cut to 15 characters. */
void ptx_tally_add(struct ptx_tally *tally, const char *name, size_t length);

/** @return how often the opcode was counted. */
size_t ptx_tally_count(const struct ptx_tally *tally, const char *name);

/** @return instructions in all. */
size_t ptx_tally_total(const struct ptx_tally *tally);

/**
 * @brief Counts every statement that ends in a semicolon and is no directive.
 *
 * Knows comments, braces, labels and lines without semicolon (.loc, .file);
 * nothing of names, types or operands. Block comments are not known.
 */
void ptx_tally_text(struct ptx_tally *tally, const char *text, size_t size);

#endif
