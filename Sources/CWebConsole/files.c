#include "CWebConsole.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

#define FILE(path, bytes) {path, bytes, sizeof(bytes)}

static const unsigned char index_html[] = {
#embed "files/index.html"
};
static const unsigned char style_css[] = {
#embed "files/style.css"
};
static const unsigned char main_js[] = {
#embed "files/main.js"
};
static const unsigned char http_yaml[] = {
#embed "../../Protocol/http.yaml"
};

static const struct CWebConsole_File files[] = {
    FILE("", index_html),
    FILE("console/style.css", style_css),
    FILE("console/main.js", main_js),
    {NULL, NULL, 0},
};

const struct CWebConsole_File *CWebConsole_files(void) { return files; }

const struct CWebConsole_File CWebConsole_description = FILE("openapi.json", http_yaml);
