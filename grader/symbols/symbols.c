#include "grader/symbols/symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "grader/symbols/tables.h"

/* Of the C++ library; the result is malloc()'s, NULL for what is no mangled name. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Longer ones stay as they are: substitutions let a name of n characters stand for 2^(n/8). */
enum { MOST_DEMANGLED = 160 };

/* A name as one writes it: "std::filesystem::remove(...)", not "_ZNSt10filesystem6removeERK...". */
static void readable(const char *name, char *text, size_t size) {
    int status = 0;
    bool mangled = strncmp(name, "_Z", 2) == 0 && strlen(name) <= MOST_DEMANGLED;
    char *demangled = mangled ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
    snprintf(text, size, "%s", demangled != NULL ? demangled : name);
    free(demangled);
}

/* "//common/device:device" is common/device to a reader, and "@cjson//:import_0" is cjson. */
static void name_library(const char *label, char *text, size_t size) {
    const char *folder = label + strspn(label, "@/");
    size_t length = strcspn(folder, ":");
    while (length > 0 && folder[length - 1] == '/') {
        length--;
    }
    snprintf(text, size, "%.*s", (int)length, folder);
}

static bool reference_allowed(const struct symbol *symbol, const char *lab, char *line,
                              size_t size) {
    if (symbol_listed(lab, symbol->name)) {
        return true;
    }
    const char *reason = symbol_refusal(symbol->name);
    if (reason == NULL && symbol->library != NULL) {
        return true;
    }
    char name[256];
    readable(symbol->name, name, sizeof name);
    snprintf(line, size, "your code refers to %s: %s", name,
             reason != NULL ? reason
                            : "it is not among what a submission may use "
                              "(grader/symbols/README.md); write what you need of it yourself");
    return false;
}

static bool definition_allowed(const struct symbol *symbol, char *line, size_t size) {
    char library[256], name[256];
    const char *owner = symbol_owner(symbol->name);
    if (owner == NULL && symbol->library != NULL) {
        name_library(symbol->library, library, sizeof library);
        owner = library;
    } else if (owner == NULL && dlsym(RTLD_DEFAULT, symbol->name) != NULL) {
        owner = "the C library";
    }
    if (owner == NULL) {
        return true;
    }
    readable(symbol->name, name, sizeof name);
    snprintf(line, size,
             "your code defines %s, a name of %s, and would be called in its place: make it static "
             "or call it something else",
             name, owner);
    return false;
}

bool symbol_allowed(const struct symbol *symbol, const char *lab, char *line, size_t size) {
    if (symbol->strange) {
        snprintf(line, size,
                 "your code has a symbol \"%s\", in which each ? is a character that names in C do "
                 "not have: use letters, digits and _",
                 symbol->name);
        return false;
    }
    return symbol->defined ? definition_allowed(symbol, line, size)
                           : reference_allowed(symbol, lab, line, size);
}

/* Cuts a line of list.sh's into its words. */
static bool parse(char *text, struct symbol *symbol) {
    char *rest = NULL;
    const char *kind = strtok_r(text, " ", &rest);
    symbol->name = strtok_r(NULL, " ", &rest);
    symbol->library = strtok_r(NULL, " ", &rest);
    symbol->defined = kind != NULL && strcmp(kind, "defines") == 0;
    symbol->strange = kind != NULL && strcmp(kind, "strange") == 0;
    return symbol->name != NULL &&
           (symbol->defined || symbol->strange || strcmp(kind, "needs") == 0) &&
           strtok_r(NULL, " ", &rest) == NULL;
}

static enum status check(const struct file_view *view, const char *path, const char *lab,
                         symbol_refused *refused, struct error *error) {
    char text[4096], line[4096 + 512];
    size_t number = 0, definitions = 0;
    for (size_t at = 0; at < view->size;) {
        const char *start = (const char *)view->data + at;
        const char *end = memchr(start, '\n', view->size - at);
        size_t length = end != NULL ? (size_t)(end - start) : view->size - at;
        struct symbol symbol = {0};
        number++;
        if (length >= sizeof text || memchr(start, '\0', length) != NULL) {
            return error_set(error, STATUS_BAD_FORMAT, "%s, line %zu: not a symbol", path, number);
        }
        memcpy(text, start, length);
        text[length] = '\0';
        if (!parse(text, &symbol)) {
            return error_set(error, STATUS_BAD_FORMAT, "%s, line %zu: not a symbol", path, number);
        }
        definitions += symbol.defined;
        if (!symbol_allowed(&symbol, lab, line, sizeof line)) {
            refused(line);
        }
        at += length + 1;
    }
    return definitions > 0 ? STATUS_OK
                           : error_set(error, STATUS_BAD_FORMAT,
                                       "%s: the submission defines nothing: it cannot be", path);
}

enum status symbols_check(const char *path, const char *lab, symbol_refused *refused,
                          struct error *error) {
    struct file_view view = {0};
    TRY(file_view_open(&view, path, error));
    enum status status = check(&view, path, lab, refused, error);
    file_view_close(&view);
    return status;
}
