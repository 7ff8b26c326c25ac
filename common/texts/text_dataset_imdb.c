/*
 * IMDB: one file a review in SPLIT/neg and SPLIT/pos, or, without labels, in train/unsup, in a
 * folder or in an archive. Reviews were taken from web pages, and have <br /> where a line ends.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/texts/tar_reader.h"
#include "common/texts/text_dataset_internal.h"
#include "common/texts/xz_reader.h"

enum { LABELS = 2, KB = 1000 };

/* Where the reviews of a split are: SPLIT/FOLDERS[i]. */
struct place {
    const char *split;
    const char *folders[LABELS];
    size_t count;      /* of folders */
    int32_t labels[2]; /* of their reviews */
};

static const struct place unlabelled = {"train", {"unsup"}, 1, {-1}};

static struct place find_place(const char *split) {
    if (strcmp(split, TEXT_DATASET_UNLABELLED) == 0) {
        return unlabelled;
    }
    return (struct place){split, {"neg", "pos"}, LABELS, {0, 1}};
}

/* Texts of each folder by itself, before they are put in turn. */
struct reviews {
    struct place place;
    struct text_list lists[LABELS];
    size_t most; /* of each folder */
};

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* ---- A review ---- */

/* Bytes of the mark of a line break at the text's beginning: <br>, <br/>, <br />; 0: none. */
static size_t line_break(const char *text) {
    static const char *const marks[] = {"<br />", "<br/>", "<br>"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t length = strlen(marks[i]);
        if (strncasecmp(text, marks[i], length) == 0) {
            return length;
        }
    }
    return 0;
}

/*
 * Each mark becomes a line break. Not a blank: a paragraph is something that a language model can
 * learn and write, and to BERT's tokenizer both are white space.
 */
static void break_lines(char *text, size_t *length) {
    size_t to = 0;
    for (size_t from = 0; from < *length; to++) {
        size_t mark = text[from] == '<' ? line_break(text + from) : 0;
        text[to] = mark > 0 ? '\n' : text[from];
        from += mark > 0 ? mark : 1;
    }
    text[to] = '\0';
    *length = to;
}

/* As text_list_add(). */
static enum status add_review(struct text_list *list, char *text, size_t length, int32_t label,
                              struct error *error) {
    break_lines(text, &length);
    return text_list_add(list, text, length, label, error);
}

/* ---- A folder ---- */

/* path = FOLDER/NAME. */
static enum status join(char *path, size_t size, const char *folder, const char *name,
                        struct error *error) {
    int length = snprintf(path, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size
               ? STATUS_OK
               : error_set(error, STATUS_TOO_LONG, "%.100s...: the path is too long", folder);
}

static int is_review(const struct dirent *entry) {
    return ends_with(entry->d_name, ".txt");
}

/* Not alphasort(), which goes by the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status read_review(struct text_list *list, const char *folder, const char *name,
                               int32_t label, struct error *error) {
    char path[4096];
    char *text;
    size_t length;
    TRY(join(path, sizeof path, folder, name, error));
    TRY(file_read(path, TEXT_MAX_BYTES, &text, &length, error));
    enum status status = add_review(list, text, length, label, error);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

static enum status read_label_folder(struct reviews *reviews, const char *split_folder,
                                     size_t index, struct error *error) {
    char folder[4096];
    struct dirent **names;
    const struct place *place = &reviews->place;
    TRY(join(folder, sizeof folder, split_folder, place->folders[index], error));
    int count = scandir(folder, &names, is_review, by_name);
    if (count < 0) {
        return error_set(error, errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO,
                         "%s: cannot read the reviews labelled '%s': %s", folder,
                         place->folders[index], strerror(errno));
    }
    size_t wanted = (size_t)count < reviews->most ? (size_t)count : reviews->most;
    struct progress progress = progress_create("reviews read", wanted);
    enum status status = STATUS_OK;
    for (int i = 0; i < count; i++) {
        if (status == STATUS_OK && (size_t)i < wanted) {
            status = read_review(&reviews->lists[index], folder, names[i]->d_name,
                                 place->labels[index], error);
            progress_update(&progress, (size_t)i + 1);
        }
        free(names[i]);
    }
    free(names);
    progress_finish(&progress);
    return status;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* ROOT/SPLIT, or ROOT/aclImdb/SPLIT, which is what unpacking the archive in ROOT makes. */
static enum status read_folder(struct reviews *reviews, const char *root, struct error *error) {
    char unpacked[4096], folder[4096];
    const char *split = reviews->place.split;
    TRY(join(folder, sizeof folder, root, split, error));
    if (!is_folder(folder)) {
        TRY(join(unpacked, sizeof unpacked, root, "aclImdb", error));
        TRY(join(folder, sizeof folder, unpacked, split, error));
    }
    if (!is_folder(folder)) {
        return error_set(error, STATUS_NOT_FOUND, "%s: holds no folder '%s' with reviews", root,
                         split);
    }
    for (size_t i = 0; i < reviews->place.count; i++) {
        TRY(read_label_folder(reviews, folder, i, error));
    }
    return STATUS_OK;
}

/* ---- An archive ---- */

/* Whether name ends in SPLIT/FOLDER/NAME.txt; then *index is its folder's. */
static bool is_wanted(const char *name, const struct place *place, size_t *index) {
    const char *parts[3] = {name, name, name}; /* where the last three parts begin */
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '/') {
            parts[0] = parts[1];
            parts[1] = parts[2];
            parts[2] = c + 1;
        }
    }
    size_t length = strlen(place->split);
    if (parts[1] == parts[0] || strncmp(parts[0], place->split, length) != 0 ||
        parts[0] + length + 1 != parts[1] || !ends_with(parts[2], ".txt")) {
        return false;
    }
    for (*index = 0; *index < place->count; ++*index) {
        size_t folder = strlen(place->folders[*index]);
        if (parts[1] + folder + 1 == parts[2] &&
            strncmp(parts[1], place->folders[*index], folder) == 0) {
            return true;
        }
    }
    return false;
}

static enum status read_entry(struct tar_reader *tar, const struct tar_entry *entry,
                              struct text_list *list, int32_t label, struct error *error) {
    if (entry->size > TEXT_MAX_BYTES) {
        return error_set(error, STATUS_TOO_LONG, "a text of %llu bytes, at most %d",
                         (unsigned long long)entry->size, TEXT_MAX_BYTES);
    }
    size_t size = (size_t)entry->size;
    char *text = malloc(size + 1);
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the texts");
    }
    enum status status = tar_reader_read(tar, text, size, error);
    if (status != STATUS_OK) {
        free(text);
        return status;
    }
    text[size] = '\0';
    return add_review(list, text, size, label, error);
}

static bool all_there(const struct reviews *reviews) {
    bool all = true;
    for (size_t i = 0; i < reviews->place.count; i++) {
        all = all && reviews->lists[i].count == reviews->most;
    }
    return all;
}

/* The bytes of an archive, packed or not, and how many of the file's have been read. */
struct packed {
    struct memory_source memory; /* as they are */
    struct xz_reader *xz;        /* or packed */
    size_t size;                 /* of the file */
};

static size_t bytes_read(const struct packed *packed) {
    return packed->xz != NULL ? xz_reader_offset(packed->xz) : packed->memory.offset;
}

/* Takes the review if it is wanted. */
static enum status take_entry(struct reviews *reviews, struct tar_reader *tar,
                              const struct tar_entry *entry, struct error *error) {
    size_t index;
    if (entry->kind != TAR_FILE || !is_wanted(entry->name, &reviews->place, &index) ||
        reviews->lists[index].count == reviews->most) {
        return STATUS_OK;
    }
    enum status status =
        read_entry(tar, entry, &reviews->lists[index], reviews->place.labels[index], error);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, entry->name);
}

static enum status read_entries(struct reviews *reviews, struct tar_reader *tar,
                                const struct packed *packed, struct progress *progress,
                                struct error *error) {
    struct tar_entry entry;
    bool found = true;
    while (!all_there(reviews)) {
        TRY(tar_reader_next(tar, &entry, &found, error));
        if (!found) {
            break;
        }
        TRY(take_entry(reviews, tar, &entry, error));
        progress_update(progress, bytes_read(packed) / KB);
    }
    return STATUS_OK;
}

static enum status read_archive(struct reviews *reviews, struct packed *packed,
                                struct error *error) {
    struct tar_reader tar;
    struct byte_source source = {memory_source_read, &packed->memory};
    if (packed->xz != NULL) {
        source = (struct byte_source){xz_reader_read, packed->xz};
    }
    tar_reader_create(&tar, source);
    struct progress progress = progress_create("kB of the archive read", packed->size / KB);
    enum status status = read_entries(reviews, &tar, packed, &progress, error);
    progress_finish(&progress);
    return status;
}

static enum status read_bytes(struct reviews *reviews, const struct file_view *view,
                              struct error *error) {
    if (view->size >= 2 && view->data[0] == 0x1f && view->data[1] == 0x8b) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "a gzip file; unpack it with tar xzf and give the folder");
    }
    struct packed packed = {.memory = {.data = view->data, .size = view->size}, .size = view->size};
    if (xz_recognise(view->data, view->size)) {
        TRY(xz_reader_create(&packed.xz, view->data, view->size, error));
    }
    enum status status = read_archive(reviews, &packed, error);
    xz_reader_free(packed.xz);
    return status;
}

static enum status read_file(struct reviews *reviews, const char *path, struct error *error) {
    struct file_view view;
    TRY(file_view_open(&view, path, error));
    enum status status = read_bytes(reviews, &view, error);
    file_view_close(&view);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

/* ---- Both ---- */

/* Moves the texts into list: neg, pos, neg, pos, and what is left of the longer. */
static enum status take_turns(struct reviews *reviews, struct text_list *list,
                              struct error *error) {
    struct text_list *lists = reviews->lists;
    size_t count = lists[0].count + lists[1].count;
    list->samples = malloc((count + 1) * sizeof *list->samples);
    if (list->samples == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the texts");
    }
    list->capacity = count + 1;
    for (size_t i = 0; i < lists[0].count || i < lists[1].count; i++) {
        for (int label = 0; label < LABELS; label++) {
            if (i < lists[label].count) {
                list->samples[list->count++] = lists[label].samples[i];
            }
        }
    }
    lists[0].count = 0;
    lists[1].count = 0;
    return STATUS_OK;
}

enum status imdb_read(struct text_list *list, const char *path,
                      const struct text_dataset_options *options, struct error *error) {
    size_t wanted = text_dataset_wanted(options);
    struct reviews reviews = {.place = find_place(options->split)};
    reviews.most = wanted / reviews.place.count + wanted % reviews.place.count;
    enum status status =
        is_folder(path) ? read_folder(&reviews, path, error) : read_file(&reviews, path, error);
    if (status == STATUS_OK) {
        status = take_turns(&reviews, list, error);
    }
    for (int label = 0; label < LABELS; label++) {
        text_list_free(&reviews.lists[label]);
    }
    return status;
}
