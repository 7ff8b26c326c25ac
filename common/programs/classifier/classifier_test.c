/**
 * @file classifier_test.c
 * @brief Expects the framework's logits for recorded texts, in batches of any size and layout.
 */
#include "common/programs/classifier/classifier.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

static const char RECORDING[] = "common/programs/classifier/expectations/classifier.json";

enum { LABELS = 3, LONGEST = 64, MOST_TEXTS = 16, MOST_BYTES = 2048 };

static const struct classifier_source SOURCE = {.shape = "tiny", .labels = LABELS, .seed = 1};

/* The recorded texts on the reference engine; zero-initialise. */
struct fixture {
    cJSON *recording;
    struct classifier_model model;
    struct engine engine;
    struct classifier_text texts[MOST_TEXTS];
    float want[MOST_TEXTS][LABELS];
    size_t count;
};

/* Bytes of hexadecimal digits. @return their number */
static size_t from_hex(const char *digits, char *bytes) {
    size_t length = strlen(digits) / 2;
    for (size_t i = 0; i < length && i < MOST_BYTES; i++) {
        unsigned value;
        sscanf(digits + 2 * i, "%2x", &value);
        bytes[i] = (char)value;
    }
    return length;
}

static void take_case(struct fixture *f, const cJSON *one) {
    char bytes[MOST_BYTES];
    struct classifier_text *text = &f->texts[f->count];
    const char *hex = cJSON_GetStringValue(cJSON_GetObjectItem(one, "text"));
    const cJSON *ids = cJSON_GetObjectItem(one, "ids");
    const cJSON *logits = cJSON_GetObjectItem(one, "logits");
    size_t length = from_hex(hex, bytes);
    ASSERT_TRUE(length <= MOST_BYTES);
    ASSERT_OK(classifier_encode(&f->model, bytes, length, LONGEST, text, NULL));
    EXPECT_INT_EQ(cJSON_GetArraySize(ids), text->count);
    for (size_t i = 0; i < text->count; i++) {
        EXPECT_INT_EQ(cJSON_GetNumberValue(cJSON_GetArrayItem(ids, (int)i)), text->ids[i]);
    }
    for (int i = 0; i < LABELS; i++) {
        f->want[f->count][i] = (float)cJSON_GetNumberValue(cJSON_GetArrayItem(logits, i));
    }
    f->count++;
}

static bool fixture_create(struct fixture *f) {
    char *json;
    size_t size;
    struct error error = {0};
    if (file_read(RECORDING, 1 << 20, &json, &size, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return false;
    }
    f->recording = cJSON_ParseWithLength(json, size);
    free(json);
    if (classifier_model_open(&f->model, &SOURCE, &error) != STATUS_OK ||
        engine_reference_create(&f->engine) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return false;
    }
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(f->recording, "cases")) {
        take_case(f, one);
    }
    return f->count >= 7 && !test_has_failed();
}

static void fixture_free(struct fixture *f) {
    for (size_t i = 0; i < f->count; i++) {
        free(f->texts[i].ids);
    }
    engine_destroy(&f->engine);
    classifier_model_close(&f->model);
    cJSON_Delete(f->recording);
}

/* Logits of all texts, in batches of `batch`. */
static void run_all(struct fixture *f, size_t batch, bool padded, size_t length,
                    float (*logits)[LABELS]) {
    struct classifier classifier;
    ASSERT_OK(classifier_create(&classifier, &f->model, &f->engine, batch, LONGEST, NULL));
    for (size_t first = 0; first < f->count; first += batch) {
        const struct classifier_text *list[MOST_TEXTS];
        size_t some = f->count - first < batch ? f->count - first : batch;
        size_t tokens = 0;
        for (size_t i = 0; i < some; i++) {
            list[i] = &f->texts[first + i];
            tokens += list[i]->count;
        }
        struct classifier_batch laid_out =
            classifier_batch(&classifier, list, some, padded, length);
        EXPECT_INT_EQ(tokens, laid_out.tokens);
        EXPECT_OK(classifier_run(&classifier, &laid_out, logits[first], NULL));
    }
    classifier_free(&classifier);
}

C_TEST(classifier, equals_the_framework_from_text_to_logits) {
    struct fixture f = {0};
    float logits[MOST_TEXTS][LABELS];
    if (fixture_create(&f)) {
        run_all(&f, 8, false, 0, logits);
        double worst = 0.0;
        for (size_t i = 0; i < f.count; i++) {
            double largest = 0.0, difference = 0.0;
            for (int label = 0; label < LABELS; label++) {
                largest = fmax(largest, fabs((double)f.want[i][label]));
                difference =
                    fmax(difference, fabs((double)f.want[i][label] - (double)logits[i][label]));
                EXPECT_TRUE(isfinite(logits[i][label]));
            }
            worst = fmax(worst, difference / largest);
            EXPECT_INT_EQ(classifier_answer(f.want[i], LABELS),
                          classifier_answer(logits[i], LABELS));
        }
        printf("largest difference %.2e (relative to the largest logit of a text)\n", worst);
        EXPECT_TRUE(worst <= 1e-4);
    }
    fixture_free(&f);
}

C_TEST(classifier, answers_do_not_depend_on_batches_and_padding) {
    static const struct {
        size_t batch;
        bool padded;
        size_t length;
    } layouts[] = {{8, false, 0}, {3, false, 0}, {1, true, 0}, {8, true, 0}, {8, true, LONGEST}};
    struct fixture f = {0};
    float one[MOST_TEXTS][LABELS], other[MOST_TEXTS][LABELS];
    if (fixture_create(&f)) {
        run_all(&f, 1, false, 0, one);
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
            run_all(&f, layouts[i].batch, layouts[i].padded, layouts[i].length, other);
            EXPECT_TRUE(memcmp(one, other, f.count * sizeof *one) == 0);
        }
    }
    fixture_free(&f);
}

C_TEST(classifier, cuts_long_texts_and_refuses_empty_ones) {
    struct classifier_model model;
    struct classifier_text text;
    struct error error = {0};
    char *words = malloc(500001);
    ASSERT_OK(classifier_model_open(&model, &SOURCE, &error));
    for (int i = 0; i < 100000; i++) {
        memcpy(words + 5L * i, "word ", 6);
    }
    ASSERT_OK(classifier_encode(&model, words, 500000, 10, &text, &error));
    EXPECT_TRUE(text.cut);
    EXPECT_INT_EQ(10, text.count);
    EXPECT_INT_EQ(wordpiece_special(model.wordpiece).cls, text.ids[0]);
    EXPECT_INT_EQ(wordpiece_special(model.wordpiece).sep, text.ids[9]);
    free(text.ids);
    ASSERT_OK(classifier_encode(&model, words, 4, 6, &text, &error)); /* w ##o ##r ##d fits */
    EXPECT_TRUE(!text.cut);
    EXPECT_INT_EQ(6, text.count);
    free(text.ids);
    static const char *const blanks[] = {"", " ", "\t\n \v\f\r"};
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++) {
        EXPECT_ERROR(STATUS_INVALID_ARGUMENT, "there is no text",
                     classifier_encode(&model, blanks[i], strlen(blanks[i]), 10, &text, &error));
    }
    EXPECT_STATUS(STATUS_BAD_UTF8, classifier_encode(&model, "a\xff", 2, 10, &text, &error));
    EXPECT_TRUE(text.ids == NULL);
    classifier_model_close(&model);
    free(words);
}

C_TEST(classifier, sorts_by_length_within_windows) {
    struct classifier_text texts[7] = {{.count = 3}, {.count = 9}, {.count = 3}, {.count = 5},
                                       {.count = 1}, {.count = 8}, {.count = 8}};
    static const size_t want_four[7] = {1, 3, 0, 2, 5, 6, 4};
    static const size_t want_all[7] = {1, 5, 6, 3, 0, 2, 4};
    size_t order[7];
    ASSERT_OK(classifier_order(texts, 7, 4, order));
    EXPECT_TRUE(memcmp(order, want_four, sizeof order) == 0);
    ASSERT_OK(classifier_order(texts, 7, 100, order));
    EXPECT_TRUE(memcmp(order, want_all, sizeof order) == 0);
    ASSERT_OK(classifier_order(texts, 0, 4, order));
}

C_TEST(classifier, answers_and_probabilities) {
    static const float logits[4] = {-1.0f, 2.0f, 2.0f, 0.0f};
    static const float huge[2] = {1e30f, -1e30f};
    double p[4], sum = exp(-3.0) + 2.0 + exp(-2.0);
    EXPECT_INT_EQ(1, classifier_answer(logits, 4));
    classifier_probabilities(logits, 4, p);
    EXPECT_NEAR(exp(-3.0) / sum, p[0], 1e-15);
    EXPECT_NEAR(1.0 / sum, p[1], 1e-15);
    EXPECT_NEAR(exp(-2.0) / sum, p[3], 1e-15);
    classifier_probabilities(huge, 2, p);
    EXPECT_NEAR(1.0, p[0], 0.0);
    EXPECT_NEAR(0.0, p[1], 0.0);
}
