#include "ws/ws_end.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "http/channel.h"
#include "ws/ws_impl.h"
#include "ws/ws_say.h"

/* --- events begin and end -------------------------------------------------------------------------- */

void ws_drop_reader(struct ws *ws)
{
    if (ws->reader)
        ws_shared_take_back(ws->shared, ws->reader);
    ws->reader = NULL;
}

void ws_free(struct ws *ws)
{
    ws_drop_reader(ws);
    limit_stop(&ws->due.limit);
    ws_shared_drop_beat(ws->beat);
    ws_shared_drop_beat(ws->pace);
    ws_output_fini(&ws->output);
    ws->shared->counts.sockets--;
    free(ws->reason);
    free(ws);
}

void ws_enter(struct ws *ws)
{
    ws->in_event = true;
}

void ws_leave(struct ws *ws)
{
    ws->in_event = false;
    if (ws->state == WS_OVER)
        ws_free(ws);
}

/* --- the end ----------------------------------------------------------------------------------------- */

/* Without memory for it, the reason is left out. */
void ws_note_end(struct ws *ws, unsigned code, struct str reason)
{
    free(ws->reason);
    ws->reason     = reason.len ? malloc(reason.len) : NULL;
    ws->reason_len = ws->reason ? (unsigned char)reason.len : 0;
    ws->code       = (unsigned short)code;
    if (ws->reason)
        memcpy(ws->reason, reason.at, reason.len);
}

void ws_finish(struct ws *ws)
{
    ws->state   = WS_OVER;
    ws->channel = NULL;
    limit_stop(&ws->due.limit);
    if (ws->user->on_closed)
        ws->user->on_closed(ws, ws->code, str_make(ws->reason, ws->reason_len));
}

void ws_end_channel(struct ws *ws)
{
    channel_end(ws->channel);
    ws_finish(ws);
}

void ws_cut(struct ws *ws, unsigned code)
{
    if (code)
        ws_note_end(ws, code, STR(""));
    channel_abort(ws->channel);
    ws_finish(ws);
}

void ws_end_if_sent(struct ws *ws)
{
    if (ws_output_waiting(&ws->output) == 0 && !ws->waits_end)
        ws_end_channel(ws);
}

static void on_closing_late(struct ws_due *due)
{
    struct ws *ws = container_of(due, struct ws, due);

    ws_enter(ws);
    ws_cut(ws, ws->state == WS_CLOSING ? WS_CODE_ABNORMAL : 0);
    ws_leave(ws);
}

void ws_start_closing_limit(struct ws *ws)
{
    ws->due.fn = on_closing_late;
    limit_start(&ws->due.limit, &ws->shared->closings);
}

void ws_begin_end(struct ws *ws)
{
    ws->state = WS_ENDING;
    ws_start_closing_limit(ws);
    ws_drop_reader(ws);
    ws_end_if_sent(ws);
}

void ws_fail(struct ws *ws, unsigned code, const char *why)
{
    struct str reason = str_of(why);

    if (ws->state == WS_OPEN) {
        ws_note_end(ws, code, reason);
        ws_say_close(ws, code, reason);
    }
    ws_begin_end(ws);
}
