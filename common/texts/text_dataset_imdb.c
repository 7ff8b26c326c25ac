/*
 * IMDB: one file per review in SPLIT/neg and SPLIT/pos, or, without labels, in train/unsup, in a
 * folder or in an archive. The reviews come from web pages and have <br /> for line breaks.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/terminal.h"
#include "common/texts/tar_reader.h"
#include "common/texts/text_dataset_internal.h"
#include "common/texts/xz_reader.h"

enum { LABELS = 2, KB = 1000 };

/* The folders of a split's reviews: SPLIT/FOLDERS[i]. */
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

/* The texts of each folder, before they are interleaved. */
struct reviews {
    struct place place;
    struct text_list lists[LABELS];
    size_t most; /* texts to read from each folder */
};

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* ---- A review ---- */

/* Length of the <br>, <br/> or <br /> at the beginning of the text; 0 if there is none. */
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
 * Replaces each <br /> by a line break, not by a blank: a language model can learn paragraphs, and
 * BERT's tokenizer treats both as white space.
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

static int is_review(const struct dirent *entry) {
    return ends_with(entry->d_name, ".txt");
}

/* Not alphasort(), whose order depends on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status read_review(struct text_list *list, const char *folder, const char *name,
                               int32_t label, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    char *text;
    size_t length;
    TRY(folder_join(path, folder, name, "data set", error));
    TRY(file_read(path, TEXT_MAX_BYTES, &text, &length, error));
    enum status status = add_review(list, text, length, label, error);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

static enum status read_files(struct reviews *reviews, size_t index, const char *folder,
                              struct dirent **names, size_t count, struct error *error) {
    size_t wanted = count < reviews->most ? count : reviews->most;
    struct progress progress = progress_create("reviews read", wanted);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < wanted && status == STATUS_OK; i++) {
        status = read_review(&reviews->lists[index], folder, names[i]->d_name,
                             reviews->place.labels[index], error);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

static enum status read_label_folder(struct reviews *reviews, const char *split_folder,
                                     size_t index, struct error *error) {
    char folder[FOLDER_PATH_BYTES];
    struct dirent **names;
    const struct place *place = &reviews->place;
    TRY(folder_join(folder, split_folder, place->folders[index], "data set", error));
    int count = scandir(folder, &names, is_review, by_name);
    if (count < 0) {
        return error_set(error, errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO,
                         "%s: cannot read the reviews labelled '%s': %s", folder,
                         place->folders[index], strerror(errno));
    }
    enum status status = read_files(reviews, index, folder, names, (size_t)count, error);
    for (int i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
    return status;
}

/* Reads ROOT/SPLIT, or ROOT/aclImdb/SPLIT, which unpacking the archive in ROOT creates. */
static enum status read_folder(struct reviews *reviews, const char *root, struct error *error) {
    char unpacked[FOLDER_PATH_BYTES], folder[FOLDER_PATH_BYTES];
    const char *split = reviews->place.split;
    TRY(folder_join(folder, root, split, "data set", error));
    if (!folder_exists(folder)) {
        TRY(folder_join(unpacked, root, "aclImdb", "data set", error));
        TRY(folder_join(folder, unpacked, split, "data set", error));
    }
    if (!folder_exists(folder)) {
        return error_set(error, STATUS_NOT_FOUND, "%s: holds no folder '%s' with reviews", root,
                         split);
    }
    for (size_t i = 0; i < reviews->place.count; i++) {
        TRY(read_label_folder(reviews, folder, i, error));
    }
    return STATUS_OK;
}

/* ---- An archive ---- */

/* Whether a name ends in SPLIT/FOLDER/NAME.txt; if so, *index is the index of the folder. */
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
    TRY(text_check_length(entry->size, error));
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

static bool is_complete(const struct reviews *reviews) {
    bool all = true;
    for (size_t i = 0; i < reviews->place.count; i++) {
        all = all && reviews->lists[i].count == reviews->most;
    }
    return all;
}

/* The bytes of an archive. */
struct packed {
    struct memory_source memory; /* used if the archive is not compressed */
    struct xz_reader *xz;        /* used if it is, else NULL */
    size_t size;                 /* of the file */
};

static size_t bytes_read(const struct packed *packed) {
    return packed->xz != NULL ? xz_reader_offset(packed->xz) : packed->memory.offset;
}

/* Reads the entry if it is a wanted review. */
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
    while (!is_complete(reviews)) {
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

/* Moves the texts into one list: neg, pos, neg, pos, ..., then the rest of the longer list. */
static enum status interleave(struct reviews *reviews, struct text_list *list,
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

static enum status read_reviews(struct reviews *reviews, struct text_list *list, const char *path,
                                struct error *error) {
    TRY(folder_exists(path) ? read_folder(reviews, path, error) : read_file(reviews, path, error));
    return interleave(reviews, list, error);
}

enum status imdb_read(struct text_list *list, const char *path,
                      const struct text_dataset_options *options, struct error *error) {
    size_t wanted = text_dataset_wanted(options);
    struct reviews reviews = {.place = find_place(options->split)};
    reviews.most = wanted / reviews.place.count + wanted % reviews.place.count;
    enum status status = read_reviews(&reviews, list, path, error);
    for (int label = 0; label < LABELS; label++) {
        text_list_free(&reviews.lists[label]);
    }
    return status;
}
