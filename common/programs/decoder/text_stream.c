#include <utf8proc.h>

#include "common/programs/decoder/generate_internal.h"

static size_t sequence_length(unsigned char lead) {
    return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
}

static bool is_white_space(unsigned char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Prints the pending bytes if they form a character, else U+FFFD. */
static void release(struct text_stream *stream) {
    utf8proc_int32_t code_point;
    utf8proc_ssize_t used =
        utf8proc_iterate(stream->pending, (utf8proc_ssize_t)stream->count, &code_point);
    if (used == (utf8proc_ssize_t)stream->count) {
        fwrite(stream->pending, 1, stream->count, stream->out);
    } else if (stream->count > 0) {
        fputs("\xef\xbf\xbd", stream->out);
    }
    stream->count = 0;
}

static void write_byte(struct text_stream *stream, unsigned char byte) {
    bool continuation = (byte & 0xc0) == 0x80;
    if (stream->count > 0 && !continuation) {
        release(stream);
    }
    if (byte < 0x80) {
        if (is_white_space(byte) || (byte > 0x20 && byte < 0x7f)) {
            fputc(byte, stream->out);
        }
        return;
    }
    stream->pending[stream->count++] = byte;
    if (stream->count == sequence_length(stream->pending[0])) {
        release(stream);
    }
}

void text_stream_write(struct text_stream *stream, const char *bytes, size_t length) {
    stream->begun = true;
    for (size_t i = 0; i < length; i++) {
        write_byte(stream, (unsigned char)bytes[i]);
    }
    fflush(stream->out);
}

void text_stream_finish(struct text_stream *stream) {
    stream->begun = false;
    release(stream);
    fflush(stream->out);
}
