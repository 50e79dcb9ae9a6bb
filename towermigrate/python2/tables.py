"""What Python 2 had that Python 3 calls otherwise, or has no more."""

from __future__ import annotations

BUILTINS = {
    "xrange": "range",
    "unicode": "str",
    "basestring": "str",
    "unichr": "chr",
    "long": "int",
    "raw_input": "input",
    "StandardError": "Exception",
}
METHODS = {"iteritems": "items", "iterkeys": "keys", "itervalues": "values"}
VIEWS = {"viewitems": "items", "viewkeys": "keys", "viewvalues": "values"}
DOTTED = {
    "sys.maxint": "sys.maxsize",
    "os.getcwdu": "os.getcwd",
    "itertools.izip": "zip",
    "itertools.imap": "map",
    "itertools.ifilter": "filter",
    "itertools.izip_longest": "itertools.zip_longest",
    "itertools.ifilterfalse": "itertools.filterfalse",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase",
}
STRING_FUNCTIONS = frozenset(
    "lower upper strip lstrip rstrip split rsplit find rfind index rindex count replace capitalize swapcase "
    "title expandtabs ljust rjust center zfill".split()
)
# The module keeps the name that the file calls it by, so nothing else changes.
MODULES = {
    "cPickle": "pickle",
    "Queue": "queue",
    "ConfigParser": "configparser",
    "StringIO": "io",
    "cStringIO": "io",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "httplib": "http.client",
    "HTMLParser": "html.parser",
    "SocketServer": "socketserver",
    "BaseHTTPServer": "http.server",
    "Tkinter": "tkinter",
    "thread": "_thread",
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
    "cookielib": "http.cookiejar",
}
URLLIB = {
    **dict.fromkeys("urlopen urlretrieve urlcleanup".split(), "request"),
    **dict.fromkeys("urlencode quote quote_plus unquote unquote_plus".split(), "parse"),
}
ITERTOOLS = {"izip": "zip", "imap": "map", "ifilter": "filter"}
ITERTOOLS_RENAMED = {"izip_longest": "zip_longest", "ifilterfalse": "filterfalse"}

GONE = ("cmp", "intern", "execfile", "apply", "buffer", "coerce")
GONE_METHODS = frozenset(
    "__cmp__ __div__ __idiv__ __rdiv__ __getslice__ __setslice__ __unicode__ __coerce__".split()
)
GONE_MODULES = frozenset("commands md5 sha sets exceptions dircache popen2 urllib".split())
