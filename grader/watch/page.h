/**
 * @file page.h
 * @brief Shows lines on the whole terminal, again and again, or one after the other without one.
 */
#ifndef WARPBOOK_GRADER_WATCH_PAGE_H_
#define WARPBOOK_GRADER_WATCH_PAGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <termios.h>

#include "grader/watch/lines.h"

/** The terminal that standard output is. */
struct page {
    bool full; /**< drawn as a whole; else lines follow each other */
    bool raw;  /**< keys come one by one, `before` is what to go back to */
    struct termios before;
    size_t rows, columns;
    size_t top; /**< first line that is shown */
};

/** Takes over the terminal; without one, or with @p plain, nothing is taken over. */
void page_open(struct page *page, bool plain);

/** Gives it back as it was. */
void page_close(struct page *page);

/** Asks for the terminal's size again. */
void page_resize(struct page *page);

/** Moves what is shown up or down, by @p by lines of @p lines folded to the width. */
void page_scroll(struct page *page, const struct lines *lines, int by);

/**
 * @brief Draws the page: as many lines as there is room for, from `top` on, and @p footer below.
 *        Lines that are too long are folded.
 */
void page_draw(const struct page *page, const struct lines *lines, const char *footer);

/** Prints lines one after the other. */
void page_print(const struct lines *lines);

/**
 * @brief Finds where a line is folded.
 * @return bytes of @p text that fit into @p columns: whole characters, up to a blank if there is
 *         one; at least one character
 */
size_t page_fold(const char *text, size_t columns);

#endif
