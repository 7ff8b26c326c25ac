/**
 * @file text_stream.h
 * @brief Prints text piece by piece, always as valid UTF-8.
 *
 * A byte-fallback tokenizer may split a character into several tokens; its bytes
 * are held back until the character is complete. Control characters other than
 * white space are dropped, so that no model can move a terminal's cursor.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_TEXT_STREAM_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_TEXT_STREAM_H_

#include <stddef.h>
#include <stdio.h>

/** Zero-initialise all but `out`. */
struct text_stream {
    FILE *out;
    unsigned char pending[4]; /**< bytes of an incomplete character */
    size_t count;
};

/** Prints @p length bytes and flushes. */
void text_stream_write(struct text_stream *stream, const char *bytes, size_t length);

/** Ends the text; an incomplete character becomes U+FFFD. */
void text_stream_finish(struct text_stream *stream);

#endif
