#include "CWebConsole.h"

// A C23 feature, which the compiler has for all of C.
#pragma clang diagnostic ignored "-Wc23-extensions"

#define FILE(path, bytes) {path, bytes, sizeof(bytes)}

static const unsigned char index_html[] = {
#embed "files/index.html"
};
static const unsigned char style_css[] = {
#embed "files/style.css"
};
static const unsigned char icon_svg[] = {
#embed "files/icon.svg"
};
static const unsigned char api_js[] = {
#embed "files/api.js"
};
static const unsigned char browse_js[] = {
#embed "files/browse.js"
};
static const unsigned char dom_js[] = {
#embed "files/dom.js"
};
static const unsigned char entry_js[] = {
#embed "files/entry.js"
};
static const unsigned char find_js[] = {
#embed "files/find.js"
};
static const unsigned char format_js[] = {
#embed "files/format.js"
};
static const unsigned char highlight_js[] = {
#embed "files/highlight.js"
};
static const unsigned char indexes_js[] = {
#embed "files/indexes.js"
};
static const unsigned char json_js[] = {
#embed "files/json.js"
};
static const unsigned char list_js[] = {
#embed "files/list.js"
};
static const unsigned char live_js[] = {
#embed "files/live.js"
};
static const unsigned char main_js[] = {
#embed "files/main.js"
};
static const unsigned char plan_js[] = {
#embed "files/plan.js"
};
static const unsigned char rights_js[] = {
#embed "files/rights.js"
};
static const unsigned char selectors_js[] = {
#embed "files/selectors.js"
};
static const unsigned char shortcuts_js[] = {
#embed "files/shortcuts.js"
};
static const unsigned char stores_js[] = {
#embed "files/stores.js"
};
static const unsigned char text_js[] = {
#embed "files/text.js"
};
static const unsigned char watch_js[] = {
#embed "files/watch.js"
};
static const unsigned char http_yaml[] = {
#embed "../../Protocol/http.yaml"
};

static const struct CWebConsole_File files[] = {
    FILE("", index_html),
    FILE("console/style.css", style_css),
    FILE("console/icon.svg", icon_svg),
    FILE("console/api.js", api_js),
    FILE("console/browse.js", browse_js),
    FILE("console/dom.js", dom_js),
    FILE("console/entry.js", entry_js),
    FILE("console/find.js", find_js),
    FILE("console/format.js", format_js),
    FILE("console/highlight.js", highlight_js),
    FILE("console/indexes.js", indexes_js),
    FILE("console/json.js", json_js),
    FILE("console/list.js", list_js),
    FILE("console/live.js", live_js),
    FILE("console/main.js", main_js),
    FILE("console/plan.js", plan_js),
    FILE("console/rights.js", rights_js),
    FILE("console/selectors.js", selectors_js),
    FILE("console/shortcuts.js", shortcuts_js),
    FILE("console/stores.js", stores_js),
    FILE("console/text.js", text_js),
    FILE("console/watch.js", watch_js),
    {NULL, NULL, 0},
};

const struct CWebConsole_File *CWebConsole_files(void) { return files; }

const struct CWebConsole_File CWebConsole_description = FILE("openapi.json", http_yaml);
