#include "common/tokenizers/bpe/tokenizer.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/file_kind.h"
#include "common/base/folder.h"

enum { FILE_LIMIT = 64 << 20 };

/* Tells JSON from a file of llama2.c, which begins with a small number, whose upper bytes are 0. */
static bool looks_like_json(const struct file_view *view) {
    size_t i = 0;
    while (i < view->size && strchr(" \t\r\n", view->data[i]) != NULL && view->data[i] != '\0') {
        i++;
    }
    return i + 1 < view->size && view->data[i] == '{' && view->data[i + 1] != '\0';
}

static enum status open_file(struct bpe **bpe, const char *path, size_t expected_tokens,
                             struct error *error) {
    struct file_view view;
    TRY(file_view_open(&view, path, error));
    enum status status;
    if (!looks_like_json(&view)) {
        status = bpe_parse(bpe, view.data, view.size, expected_tokens, error);
    } else if (view.size > FILE_LIMIT) {
        status = error_set(error, STATUS_TOO_LONG, "has %zu bytes, at most %d are allowed",
                           view.size, FILE_LIMIT);
    } else {
        status =
            tokenizer_json_parse(bpe, (const char *)view.data, view.size, expected_tokens, error);
    }
    if (status != STATUS_OK) {
        const size_t told = looks_like_json(&view) ? 0 : view.size;
        status = file_kind_explain(error, status, path, view.data, told,
                                   "give llama2.c's tokenizer.bin or a tokenizer.json");
    }
    file_view_close(&view);
    return status;
}

enum status tokenizer_open(struct bpe **bpe, const char *path, size_t expected_tokens,
                           struct error *error) {
    static const char *const names[] = {"tokenizer.json", "tokenizer.bin"};
    *bpe = NULL;
    if (!folder_exists(path)) {
        return open_file(bpe, path, expected_tokens, error);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[FOLDER_PATH_BYTES];
        TRY(folder_join(file, path, names[i], "tokenizer", error));
        if (path_exists(file)) {
            return open_file(bpe, file, expected_tokens, error);
        }
    }
    return error_set(error, STATUS_NOT_FOUND, "%s: neither %s nor %s is in this folder", path,
                     names[0], names[1]);
}
