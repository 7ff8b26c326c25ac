#include "grader/watch/page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/terminal.h"

static const char ENTER[] = "\033[?1049h\033[?25l"; /* the other screen, no cursor */
static const char LEAVE[] = "\033[?25h\033[?1049l";
static const char HOME[] = "\033[H";
static const char REST_OF_LINE[] = "\033[K";
static const char REST_OF_PAGE[] = "\033[J";

enum { LEAST_COLUMNS = 20, LEAST_ROWS = 4 };

void page_resize(struct page *page) {
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    page->columns = known ? size.ws_col : 80;
    page->rows = known ? size.ws_row : 24;
    page->columns = page->columns < LEAST_COLUMNS ? LEAST_COLUMNS : page->columns;
    page->rows = page->rows < LEAST_ROWS ? LEAST_ROWS : page->rows;
}

/* Keys without Enter and without echo; Ctrl-Z would leave the terminal like that. */
static void take_keys(struct page *page) {
    struct termios now;
    if (tcgetattr(STDIN_FILENO, &page->before) != 0) {
        return;
    }
    now = page->before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    page->raw = tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
}

void page_open(struct page *page, bool plain) {
    const char *kind = getenv("TERM");
    bool dumb = kind == NULL || kind[0] == '\0' || strcmp(kind, "dumb") == 0;
    *page = (struct page){.full = !plain && !dumb && isatty(STDOUT_FILENO)};
    page_resize(page);
    if (page->full) {
        take_keys(page);
        fputs(ENTER, stdout);
    }
    fflush(stdout);
}

void page_close(struct page *page) {
    if (page->full) {
        fputs(LEAVE, stdout);
        fflush(stdout);
    }
    if (page->raw) {
        tcsetattr(STDIN_FILENO, TCSANOW, &page->before);
    }
    *page = (struct page){.full = false};
}

/* ---- Folding ---- */

static bool continues(char c) {
    return ((unsigned char)c & 0xc0) == 0x80; /* a further byte of a character */
}

size_t page_fold(const char *text, size_t columns) {
    size_t used = 0, length = 0, blank = 0;
    while (text[length] != '\0' && used < columns) {
        blank = text[length] == ' ' ? length : blank;
        length++;
        while (continues(text[length])) {
            length++;
        }
        used++;
    }
    bool whole = text[length] == '\0' || text[length] == ' ';
    return whole || blank < length / 2 ? length : blank + 1;
}

/* Counts the rows that a line takes. */
static size_t rows_of(const char *text, size_t columns) {
    size_t rows = 0;
    do {
        text += page_fold(text, columns);
        text += strspn(text, " ");
        rows++;
    } while (*text != '\0');
    return rows;
}

static size_t rows_of_all(const struct lines *lines, size_t columns) {
    size_t rows = 0;
    for (size_t i = 0; i < lines->count; i++) {
        rows += rows_of(lines->list[i].text, columns);
    }
    return rows;
}

void page_scroll(struct page *page, const struct lines *lines, int by) {
    size_t all = rows_of_all(lines, page->columns), room = page->rows - 2;
    size_t last = all > room ? all - room : 0;
    size_t down = by > 0 ? (size_t)by : 0, up = by < 0 ? (size_t)-by : 0;
    page->top = page->top + down < up ? 0 : page->top + down - up;
    page->top = page->top > last ? last : page->top;
}

/* ---- Drawing ---- */

static void begin_style(enum line_style style) {
    static const enum colour colours[LINE_STYLES] = {[LINE_GOOD] = COLOUR_GREEN,
                                                     [LINE_BAD] = COLOUR_RED,
                                                     [LINE_BUSY] = COLOUR_YELLOW,
                                                     [LINE_STRONG] = COLOUR_BOLD};
    if (style != LINE_PLAIN) {
        fputs(terminal_colour(stdout, colours[style]), stdout);
    }
}

static void end_style(enum line_style style) {
    if (style != LINE_PLAIN) {
        fputs(terminal_plain(stdout), stdout);
    }
}

static void print_row(const char *text, size_t length, enum line_style style) {
    begin_style(style);
    printf("%.*s", (int)length, text);
    end_style(style);
    printf("%s\r\n", REST_OF_LINE);
}

/* Rows from *skip on, at most *room of them; both are counted down. */
static void print_line(const struct page *page, const struct line *line, size_t *skip,
                       size_t *room) {
    const char *text = line->text;
    do {
        size_t length = page_fold(text, page->columns);
        if (*skip > 0) {
            (*skip)--;
        } else if (*room > 0) {
            print_row(text, length, line->style);
            (*room)--;
        }
        text += length;
        text += strspn(text, " ");
    } while (*text != '\0');
}

void page_draw(const struct page *page, const struct lines *lines, const char *footer) {
    size_t skip = page->top, room = page->rows - 2;
    size_t hidden = rows_of_all(lines, page->columns);
    hidden = hidden > skip + room ? hidden - skip - room : 0;
    fputs(HOME, stdout);
    for (size_t i = 0; i < lines->count; i++) {
        print_line(page, &lines->list[i], &skip, &room);
    }
    fputs(REST_OF_PAGE, stdout);
    printf("\033[%zu;1H", page->rows);
    char text[256];
    snprintf(text, sizeof text, hidden > 0 ? "%s   (%zu more below)" : "%s", footer, hidden);
    printf("%.*s%s", (int)page_fold(text, page->columns), text, REST_OF_LINE);
    fflush(stdout);
}

void page_print(const struct lines *lines) {
    for (size_t i = 0; i < lines->count; i++) {
        const struct line *line = &lines->list[i];
        begin_style(line->style);
        fputs(line->text, stdout);
        end_style(line->style);
        fputc('\n', stdout);
    }
    fflush(stdout);
}
