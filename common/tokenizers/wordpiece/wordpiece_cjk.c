/**
 * @file wordpiece_cjk.c
 * @brief Which characters BERT takes for CJK ideographs: each becomes a word of its own.
 */
#include <stddef.h>

#include "common/tokenizers/wordpiece/wordpiece_internal.h"

bool character_is_cjk(int32_t code_point) {
    /* BERT's list, with the library's own start of extension E: U+2B920 for U+2B820. */
    static const struct {
        int32_t first, last;
    } blocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                  {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && blocks[i].first <= code_point; i++) {
        if (code_point <= blocks[i].last) {
            return true;
        }
    }
    return false;
}
