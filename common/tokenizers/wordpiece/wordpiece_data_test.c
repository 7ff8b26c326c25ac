/* bert-base-uncased's vocabulary, against recorded ids of the Hugging Face library. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/testing/expectation.h"
#include "common/testing/testing.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

enum { COMMAND_NOT_FOUND = 127 /* a shell's exit status */ };
enum { REVIEWS = 1000 /* of each kind */, IN_ARCHIVE = 12500, BLOCK = 512, NAME_BYTES = 100 };

static const char VOCABULARY[] = "bert-base-uncased-vocab.txt";

static struct wordpiece *open_vocabulary(void) {
    char path[1024];
    struct wordpiece *wordpiece = NULL;
    struct error error = {0};
    if (test_data_path(VOCABULARY, path, sizeof path)) {
        EXPECT_OK(wordpiece_open(&wordpiece, path, &error));
        EXPECT_STR_EQ("", error.message);
    }
    return wordpiece;
}

/* Encodes each text of an array and compares; those of "limits" are truncated. */
static void check_cases(const struct wordpiece *wordpiece, const struct cJSON *cases) {
    const struct cJSON *one;
    cJSON_ArrayForEach(one, cases) {
        size_t length, count;
        char *text = expectation_text(one, "text", &length);
        ASSERT_TRUE(text != NULL);
        const struct cJSON *limit = cJSON_GetObjectItemCaseSensitive(one, "max_length");
        size_t max_length = limit != NULL ? (size_t)cJSON_GetNumberValue(limit) : 0;
        int32_t *ids;
        ASSERT_OK(wordpiece_encode(wordpiece, text, length, max_length, &ids, &count, NULL));
        expectation_check_ids(cJSON_GetObjectItemCaseSensitive(one, "ids"), ids, count,
                              expectation_string(one, "text"));
        free(ids);
        free(text);
    }
}

C_TEST(wordpiece_data, hard_cases_equal_the_library) {
    struct wordpiece *wordpiece = open_vocabulary();
    if (wordpiece == NULL) {
        TEST_SKIP("needs %s in the folder that $WARPBOOK_DATA names", VOCABULARY);
    }
    EXPECT_INT_EQ(30522, wordpiece_size(wordpiece));
    struct cJSON *json =
        expectation_load("common/tokenizers/wordpiece/expectations/wordpiece.json");
    ASSERT_TRUE(json != NULL);
    const struct cJSON *cases = cJSON_GetObjectItemCaseSensitive(json, "cases");
    const struct cJSON *limits = cJSON_GetObjectItemCaseSensitive(json, "limits");
    EXPECT_TRUE(cJSON_GetArraySize(cases) >= 80);
    EXPECT_TRUE(cJSON_GetArraySize(limits) >= 50);
    check_cases(wordpiece, cases);
    check_cases(wordpiece, limits);
    cJSON_Delete(json);
    wordpiece_free(wordpiece);
}

struct review {
    char name[NAME_BYTES + 1];
    char *text;
    size_t length;
};

/* The reviews of one folder of the archive. */
struct reviews {
    const char *folder;
    struct review *items; /* IN_ARCHIVE */
    size_t count;
};

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct review *)a)->name, ((const struct review *)b)->name);
}

/*
 * Reads one member of a tar archive (ustar: 512 bytes of header with the name
 * first and the size in octal digits at 124, then the data, padded).
 * @return false at the end of the archive
 */
static bool read_member(FILE *tar, struct review *member) {
    char header[BLOCK], padding[BLOCK];
    if (fread(header, 1, BLOCK, tar) != BLOCK || header[0] == '\0') {
        return false;
    }
    memcpy(member->name, header, NAME_BYTES);
    member->name[NAME_BYTES] = '\0';
    member->length = strtoul(header + 124, NULL, 8);
    member->text = malloc(member->length + 1);
    size_t rest = (BLOCK - member->length % BLOCK) % BLOCK;
    if (member->text == NULL || fread(member->text, 1, member->length, tar) != member->length ||
        fread(padding, 1, rest, tar) != rest) {
        free(member->text);
        return false;
    }
    return true;
}

static bool belongs_to(const struct review *review, const struct reviews *reviews) {
    size_t length = strlen(reviews->folder);
    return strncmp(review->name, reviews->folder, length) == 0 && review->name[length] != '\0' &&
           reviews->count < IN_ARCHIVE;
}

/* Reads the whole archive; keeps what belongs to the two folders, sorted by name. */
static void read_reviews(FILE *tar, struct reviews folders[2]) {
    struct review member;
    while (read_member(tar, &member)) {
        int kind = belongs_to(&member, &folders[0]) ? 0 : 1;
        if (belongs_to(&member, &folders[kind])) {
            folders[kind].items[folders[kind].count++] = member;
        } else {
            free(member.text);
        }
    }
    while (fgetc(tar) != EOF) { /* so that xz does not die of a broken pipe */
    }
    for (int kind = 0; kind < 2; kind++) {
        qsort(folders[kind].items, folders[kind].count, sizeof *folders[kind].items, compare_names);
    }
}

static void free_reviews(struct reviews *reviews) {
    for (size_t i = 0; i < reviews->count; i++) {
        free(reviews->items[i].text);
    }
    free(reviews->items);
}

static uint64_t hash_review(const struct wordpiece *wordpiece, const struct review *review,
                            size_t max_length, uint64_t hash, size_t *count) {
    int32_t *ids = NULL;
    EXPECT_OK(
        wordpiece_encode(wordpiece, review->text, review->length, max_length, &ids, count, NULL));
    hash = expectation_hash(hash, ids, *count);
    free(ids);
    return hash;
}

static const struct review *review_at(const struct reviews folders[2], size_t index) {
    return &folders[index / REVIEWS].items[index % REVIEWS];
}

static void check_whole(const struct wordpiece *wordpiece, const struct reviews folders[2],
                        const struct cJSON *recorded) {
    EXPECT_INT_EQ(2 * REVIEWS, cJSON_GetArraySize(recorded));
    const struct cJSON *want;
    size_t index = 0;
    cJSON_ArrayForEach(want, recorded) {
        const struct review *review = review_at(folders, index++);
        size_t count;
        uint64_t hash = hash_review(wordpiece, review, 0, expectation_hash_start(), &count);
        char got[64];
        snprintf(got, sizeof got, "%zu %016llx", count, (unsigned long long)hash);
        if (strcmp(cJSON_GetStringValue(want), got) != 0) {
            TEST_FAIL("%s: count and hash of ids are %s, the library's %s", review->name, got,
                      cJSON_GetStringValue(want));
        }
    }
}

static void check_truncated(const struct wordpiece *wordpiece, const struct reviews folders[2],
                            const struct cJSON *recorded) {
    const struct cJSON *one;
    EXPECT_TRUE(cJSON_GetArraySize(recorded) >= 4);
    cJSON_ArrayForEach(one, recorded) {
        double limit = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(one, "max_length"));
        uint64_t hash = expectation_hash_start();
        for (size_t index = 0; index < 2 * REVIEWS; index++) {
            size_t count;
            hash = hash_review(wordpiece, review_at(folders, index), (size_t)limit, hash, &count);
            EXPECT_TRUE(count <= (size_t)limit);
        }
        char what[64];
        snprintf(what, sizeof what, "reviews truncated to %.0f ids", limit);
        expectation_check_hash(expectation_string(one, "hash"), hash, what);
    }
}

static void check_reviews(const struct wordpiece *wordpiece, const struct reviews folders[2]) {
    struct cJSON *json =
        expectation_load("common/tokenizers/wordpiece/expectations/wordpiece.json");
    ASSERT_TRUE(json != NULL);
    check_whole(wordpiece, folders, cJSON_GetObjectItemCaseSensitive(json, "reviews"));
    check_truncated(wordpiece, folders, cJSON_GetObjectItemCaseSensitive(json, "review_limits"));
    cJSON_Delete(json);
}

C_TEST(wordpiece_data, reviews_equal_the_library) {
    char path[1024];
    struct wordpiece *wordpiece = open_vocabulary();
    if (wordpiece == NULL || !test_data_path("aclImdb_labelled.tar.xz", path, sizeof path)) {
        wordpiece_free(wordpiece);
        TEST_SKIP("needs %s and aclImdb_labelled.tar.xz in the folder that $WARPBOOK_DATA names",
                  VOCABULARY);
    }
    struct reviews folders[2] = {
        {"aclImdb/test/pos/", calloc(IN_ARCHIVE, sizeof(struct review)), 0},
        {"aclImdb/test/neg/", calloc(IN_ARCHIVE, sizeof(struct review)), 0}};
    ASSERT_TRUE(folders[0].items != NULL && folders[1].items != NULL);
    setenv("WARPBOOK_ARCHIVE", path, 1); /* the shell takes it from there: no quoting */
    FILE *tar = popen("exec xz -dc -- \"$WARPBOOK_ARCHIVE\"", "r");
    ASSERT_TRUE(tar != NULL);
    read_reviews(tar, folders);
    int status = pclose(tar);
    bool complete = status == 0 && folders[0].count == IN_ARCHIVE && folders[1].count == IN_ARCHIVE;
    if (complete) {
        check_reviews(wordpiece, folders);
    }
    size_t found = folders[0].count + folders[1].count;
    free_reviews(&folders[0]);
    free_reviews(&folders[1]);
    wordpiece_free(wordpiece);
    if (WIFEXITED(status) && WEXITSTATUS(status) == COMMAND_NOT_FOUND) {
        TEST_SKIP("needs xz to read aclImdb_labelled.tar.xz");
    }
    EXPECT_INT_EQ(0, status);
    EXPECT_INT_EQ(2 * IN_ARCHIVE, found);
}
