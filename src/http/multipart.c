#include "http/multipart.h"

enum state {
    PREAMBLE, /* up to the first delimiter */
    CONTENT,  /* of a part, up to the next */
    BEHIND,   /* behind a delimiter: "--", or blanks and the end of the line */
    DASH,     /* "-" of the last delimiter */
    PADDING,
    LINE_FEED, /* wanted, for a CR came */
    HEAD,
    LAST_PADDING, /* behind "--": blanks and the end of the line, or of the body */
    LAST_LINE_FEED,
    EPILOGUE,
    BROKEN,
};

/* --- life ---------------------------------------------------------------------------------------- */

static enum multipart_step break_off(struct multipart *m, unsigned fault, const char *why)
{
    m->state = BROKEN;
    m->fault = fault;
    m->why   = why;
    return MULTIPART_BROKEN;
}

/* RFC 2046 knows fewer characters, but clients use others ("*****") and none of these is misread. */
static bool is_boundary(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] < ' ' || s.at[i] > '~' || s.at[i] == '"' || s.at[i] == '\\')
            return false;
    return s.len && s.len <= MULTIPART_BOUNDARY_BYTES_MAX && s.at[s.len - 1] != ' ';
}

/* NULL, or what is wrong. */
static const char *find_boundary(struct str content_type, struct str *boundary)
{
    struct str             rest = str_from(content_type, str_find(content_type, ';'));
    struct multipart_param param;
    int                    rc;

    *boundary = STR_NONE;
    while ((rc = multipart_param_next(&rest, &param)) > 0) {
        if (!str_is_nocase(param.name, STR("boundary")))
            continue;
        if (boundary->at)
            return "the Content-Type has two boundaries";
        *boundary = param.value;
    }
    if (rc < 0)
        return "the parameters of the Content-Type are malformed";
    if (!boundary->at)
        return "the Content-Type has no boundary";
    return is_boundary(*boundary) ? NULL : "the boundary has not 1 to 70 plain characters";
}

/* The line end before what comes now was read, and is no content. */
static void lend_line_end(struct multipart *m)
{
    m->matched = m->lent = 2;
}

bool multipart_init(struct multipart *m, struct str content_type)
{
    struct str  boundary;
    const char *why = find_boundary(content_type, &boundary);

    m->head = m->texts = (struct buf){ 0 };
    if (why) {
        break_off(m, 400, why);
        return false;
    }
    buf_init(&m->head, MULTIPART_HEAD_BYTES_MAX);
    buf_init(&m->texts, 4 * MULTIPART_HEAD_BYTES_MAX);
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.at, boundary.len);
    m->delimiter_len = 4 + boundary.len;
    m->state         = PREAMBLE;
    lend_line_end(m); /* the first one needs none before it */
    m->fault = 0;
    m->why   = NULL;
    return true;
}

void multipart_fini(struct multipart *m)
{
    buf_fini(&m->head);
    buf_fini(&m->texts);
}

/* --- content ------------------------------------------------------------------------------------- */

/* Where in IN the delimiter begins, whole or as far as IN goes; its length if nowhere. */
static size_t find_delimiter(const struct multipart *m, struct str in)
{
    size_t at = 0;

    for (;; at++) {
        struct str rest = str_from(in, at);
        size_t     len;

        at += str_find(rest, '\r');
        len = in.len - at < m->delimiter_len ? in.len - at : m->delimiter_len;
        if (!len || memcmp(in.at + at, m->delimiter, len) == 0)
            return at;
    }
}

static void match_more(struct multipart *m, struct str *in)
{
    size_t i = 0;

    while (i < in->len && m->matched < m->delimiter_len && in->at[i] == m->delimiter[m->matched]) {
        i++;
        m->matched++;
    }
    *in = str_from(*in, i);
}

/* True: a delimiter was read. Else *CONTENT is what stands before it, or empty: go on if there is input.
 * A CR is only the delimiter's first byte, so nothing that failed to be one hides another. */
static bool read_content(struct multipart *m, struct str *in, struct str *content)
{
    size_t plain;

    *content = STR_NONE;
    if (!m->matched && (plain = find_delimiter(m, *in)) > 0) {
        *content = str_make(in->at, plain);
        *in      = str_from(*in, plain);
        return false;
    }
    match_more(m, in);
    if (m->matched == m->delimiter_len) {
        m->matched = m->lent = 0;
        return true;
    }
    if (in->len) {
        *content   = str_make(m->delimiter + m->lent, m->matched - m->lent);
        m->matched = m->lent = 0;
    }
    return false;
}

static enum multipart_step step_preamble(struct multipart *m, struct str *in)
{
    struct str skipped;

    while (in->len)
        if (read_content(m, in, &skipped)) {
            m->state = BEHIND;
            break;
        }
    return MULTIPART_MORE;
}

static enum multipart_step step_content(struct multipart *m, struct str *in, struct str *data)
{
    if (read_content(m, in, data)) {
        m->state = BEHIND;
        return MULTIPART_END;
    }
    return data->len ? MULTIPART_DATA : MULTIPART_MORE;
}

/* --- delimiters and heads ------------------------------------------------------------------------- */

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static enum multipart_step step_delimiter(struct multipart *m, struct str *in)
{
    char byte = in->at[0];

    *in = str_from(*in, 1);
    if (m->state == DASH) {
        if (byte != '-')
            return break_off(m, 400, "a delimiter goes on behind the boundary");
        m->state = LAST_PADDING;
    } else if (m->state == BEHIND && byte == '-') {
        m->state = DASH;
    } else if (m->state == LINE_FEED || m->state == LAST_LINE_FEED) {
        if (byte != '\n')
            return break_off(m, 400, "a line ends in CR without LF");
        m->state = m->state == LINE_FEED ? HEAD : EPILOGUE;
        buf_clear(&m->head);
    } else if (is_blank(byte)) {
        m->state = m->state == LAST_PADDING ? LAST_PADDING : PADDING;
    } else if (byte == '\r') {
        m->state = m->state == LAST_PADDING ? LAST_LINE_FEED : LINE_FEED;
    } else {
        return break_off(m, 400, "a delimiter goes on behind the boundary");
    }
    return MULTIPART_MORE;
}

static enum multipart_step end_head(struct multipart *m)
{
    unsigned fault;

    m->head.len -= 2;
    fault = multipart_head_parse(&m->part, &m->head, &m->texts, &m->why);
    if (fault)
        return break_off(m, fault, m->why);
    m->state = CONTENT;
    lend_line_end(m); /* the head's last one may be the delimiter's: a part without a body */
    return MULTIPART_PART;
}

static bool ends_head(struct str head)
{
    return str_ends_with(head, STR("\r\n\r\n")) || str_is(head, STR("\r\n"));
}

static enum multipart_step step_head(struct multipart *m, struct str *in)
{
    size_t line = str_find(*in, '\n');
    bool   ends = line < in->len;

    line += ends;
    buf_add(&m->head, in->at, line);
    *in = str_from(*in, line);
    if (m->head.failed)
        return break_off(m, 413, "the head of a part is over 16KiB");
    if (!ends)
        return MULTIPART_MORE;
    if (!str_ends_with(buf_str(&m->head), STR("\r\n")))
        return break_off(m, 400, "a line ends in LF without CR");
    return ends_head(buf_str(&m->head)) ? end_head(m) : MULTIPART_MORE;
}

enum multipart_step multipart_next(struct multipart *m, struct str *in, struct str *data)
{
    enum multipart_step step = MULTIPART_MORE;

    *data = STR_NONE;
    while (step == MULTIPART_MORE && in->len) {
        switch ((enum state)m->state) {
        case PREAMBLE: step = step_preamble(m, in); break;
        case CONTENT: step = step_content(m, in, data); break;
        case BEHIND:
        case DASH:
        case PADDING:
        case LINE_FEED:
        case LAST_PADDING:
        case LAST_LINE_FEED: step = step_delimiter(m, in); break;
        case HEAD: step = step_head(m, in); break;
        case EPILOGUE: *in = str_from(*in, in->len); break;
        case BROKEN: return MULTIPART_BROKEN;
        }
    }
    return step;
}

bool multipart_finish(struct multipart *m)
{
    if (m->state == LAST_PADDING || m->state == EPILOGUE)
        return true;
    if (m->state != BROKEN)
        break_off(m, 400, "the body ends before its last delimiter");
    return false;
}
