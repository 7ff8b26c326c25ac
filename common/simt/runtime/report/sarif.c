#include "common/simt/runtime/report/sarif.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/page/page.h"

void sarif_add(struct sarif *sarif, const struct simt_fault *fault) {
    if (sarif->count == sarif->capacity) {
        size_t capacity = sarif->capacity == 0 ? 4 : 2 * sarif->capacity;
        struct simt_fault *faults = realloc(sarif->faults, capacity * sizeof *faults);
        if (faults == NULL) {
            return;
        }
        sarif->faults = faults;
        sarif->capacity = capacity;
    }
    sarif->faults[sarif->count++] = *fault;
}

void sarif_free(struct sarif *sarif) {
    free(sarif->faults);
    *sarif = (struct sarif){0};
}

/* "race in shared memory": race-in-shared-memory. */
static void print_rule_id(enum simt_fault_kind kind, FILE *stream) {
    fputc('"', stream);
    for (const char *at = simt_fault_name(kind); *at != '\0'; at++) {
        fputc(*at == ' ' ? '-' : *at, stream);
    }
    fputc('"', stream);
}

/* A rule for each kind of fault, in their order, so that a kind is its rule's index but one. */
static void print_rules(FILE *stream) {
    fputs("\"rules\":[", stream);
    for (int kind = SIMT_FAULT_NONE + 1; kind <= SIMT_FAULT_ASSERT; kind++) {
        const char *hint = simt_fault_hint((enum simt_fault_kind)kind);
        fputs(kind > SIMT_FAULT_NONE + 1 ? ",{\"id\":" : "{\"id\":", stream);
        print_rule_id((enum simt_fault_kind)kind, stream);
        fputs(",\"shortDescription\":{\"text\":", stream);
        page_print_quoted(simt_fault_name((enum simt_fault_kind)kind), stream);
        fputs("}", stream);
        if (hint != NULL) {
            fputs(",\"help\":{\"text\":", stream);
            page_print_quoted(hint, stream);
            fputs("}", stream);
        }
        fputs("}", stream);
    }
    fputs("]", stream);
}

/* A path as a URI; absolute ones begin with file://. */
static void print_uri(const char *path, FILE *stream) {
    static const char hex[] = "0123456789ABCDEF";
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    fputs(path[0] == '/' ? "\"file://" : "\"", stream);
    for (const char *at = path; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (strchr(plain, c) != NULL) {
            fputc(c, stream);
        } else {
            fprintf(stream, "%%%c%c", hex[c >> 4], hex[c & 15]);
        }
    }
    fputc('"', stream);
}

static void print_place(const struct simt_fault_place *place, FILE *stream) {
    fputs("\"physicalLocation\":{\"artifactLocation\":{\"uri\":", stream);
    print_uri(place->file, stream);
    fputs("}", stream);
    if (place->line > 0) {
        fprintf(stream, ",\"region\":{\"startLine\":%u}", place->line);
    }
    fputs("}", stream);
}

/* The other side, and the calls of an inlined function. */
static void print_related(const struct simt_fault *fault, FILE *stream) {
    int id = 0;
    for (int n = -1; n < SIMT_FAULT_CALLERS; n++) {
        const struct simt_fault_place *place = n < 0 ? &fault->other : &fault->callers[n];
        if (place->file[0] == '\0') {
            continue;
        }
        fprintf(stream, "%s{\"id\":%d,", id == 0 ? ",\"relatedLocations\":[" : ",", id + 1);
        print_place(place, stream);
        fprintf(stream, ",\"message\":{\"text\":\"%s\"}}",
                n < 0 ? "the other access" : "called here");
        id++;
    }
    fputs(id > 0 ? "]" : "", stream);
}

static void print_message(const struct simt_fault *fault, FILE *stream) {
    char text[2048], head[128];
    const char *hint = fault->hint != NULL ? fault->hint : simt_fault_hint(fault->kind);
    snprintf(text, sizeof text, "%s %s%s%s", simt_fault_head(fault, head, sizeof head), fault->text,
             hint != NULL ? "\nhint: " : "", hint != NULL ? hint : "");
    fputs("\"message\":{\"text\":", stream);
    page_print_quoted(text, stream);
    fputs("}", stream);
}

static void print_result(const struct simt_fault *fault, FILE *stream) {
    struct simt_fault_place place = {.line = fault->line};
    memcpy(place.file, fault->file, sizeof place.file);
    fputs("{\"ruleId\":", stream);
    print_rule_id(fault->kind, stream);
    fprintf(stream, ",\"ruleIndex\":%d,\"level\":\"error\",", (int)fault->kind - 1);
    print_message(fault, stream);
    fputs(",\"locations\":[{", stream);
    if (place.file[0] != '\0') {
        print_place(&place, stream);
        fputs(",", stream);
    }
    fputs("\"logicalLocations\":[{\"kind\":\"function\",\"fullyQualifiedName\":", stream);
    page_print_quoted(fault->kernel, stream);
    fputs("}]}]", stream);
    print_related(fault, stream);
    fputs("}", stream);
}

void sarif_print(const struct sarif *sarif, FILE *stream) {
    fputs("{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\","
          "\"runs\":[{\"tool\":{\"driver\":{\"name\":\"simt\",",
          stream);
    print_rules(stream);
    fputs("}},\"results\":[", stream);
    for (size_t n = 0; n < sarif->count; n++) {
        fputs(n > 0 ? "," : "", stream);
        print_result(&sarif->faults[n], stream);
    }
    fputs("]}]}\n", stream);
}
