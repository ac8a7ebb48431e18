--- The look of the page of srv.openapi.
return [[

:root{color-scheme:light dark;--ink:#1d2327;--dim:#5a6570;--paper:#fff;--shade:#f3f5f7;--line:#d5dbe0;--link:#0b5cad;
--get:#0b5cad;--post:#1a6e35;--put:#8a5200;--delete:#b3261e;--other:#5b4a9e;--ink-on:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e3e7ea;--dim:#a0abb5;--paper:#16191c;--shade:#20252a;--line:#3a424a;
--link:#7fb8f5;--get:#7fb8f5;--post:#7fd39a;--put:#f0b866;--delete:#ff9d94;--other:#c0b2ff;--ink-on:#16191c}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
header,main{max-width:64rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.5rem}
main{padding-bottom:4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0}h1 small{font-size:.9rem;font-weight:400;color:var(--dim)}
h2{font-size:1.2rem;margin:2rem 0 .5rem;padding-bottom:.25rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.25rem 0 .4rem}
h4{font-size:.9rem;margin:.75rem 0 .25rem}
p{margin:.4rem 0}header p span{color:var(--dim);margin-left:.5rem}
a{color:var(--link)}
code,pre,textarea{font:.86rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{margin:.25rem 0;padding:.75rem;background:var(--shade);border-radius:.4rem;white-space:pre-wrap;max-height:32rem;
overflow:auto}
.skip{position:absolute;left:-100vw}.skip:focus{left:1rem;top:.5rem;background:var(--paper);padding:.25rem .5rem}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.tools{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0}
.tools label{flex:1 1 14rem}
label{display:block;font-size:.9rem}
label span{display:block}
input,select,textarea,button{font-size:1rem;color:inherit;background:var(--paper);border:1px solid var(--dim);
border-radius:.35rem;
padding:.45rem .6rem;max-width:100%;min-height:2.5rem}
input,select,textarea{width:100%}
input[type=file]{border:0;padding-left:0}
textarea{min-height:9rem;resize:vertical}
button{background:var(--link);border-color:var(--link);color:var(--ink-on);padding:.45rem 1.2rem;cursor:pointer}
details.op{border:1px solid var(--line);border-left:.3rem solid var(--of);border-radius:.4rem;margin:.5rem 0;
background:var(--paper)}
details.op>summary{display:flex;flex-wrap:wrap;align-items:baseline;gap:.25rem .75rem;padding:.6rem .75rem;
cursor:pointer;list-style:none}
details.op>summary::-webkit-details-marker{display:none}
details.op>summary:hover{background:var(--shade)}
details.op>div{padding:0 .75rem 1rem;border-top:1px solid var(--line)}
.method{min-width:4.2rem;font-weight:700;font-size:.85rem;color:var(--of)}
.path{font-weight:600}.says{color:var(--dim)}.old .path{text-decoration:line-through}
.get{--of:var(--get)}.post{--of:var(--post)}.put,.patch{--of:var(--put)}.delete{--of:var(--delete)}
.head,.options,.trace{--of:var(--other)}
ul.fields{list-style:none;margin:.25rem 0;padding:0}
ul.fields>li{padding:.4rem 0;border-bottom:1px solid var(--line)}
ul.fields>li:last-child{border-bottom:0}
ul.fields ul.fields,.inner{margin-left:.5rem;padding-left:.75rem;border-left:2px solid var(--line)}
.name{font-weight:600}.type{color:var(--dim);font-size:.9rem}.must{color:var(--delete);font-size:.85rem}
.inner summary,li summary{cursor:pointer;color:var(--link);font-size:.9rem;padding:.2rem 0}
form{display:grid;gap:.75rem;background:var(--shade);border-radius:.4rem;padding:.75rem;margin-top:.5rem}
form button{justify-self:start}
.result:empty{display:none}
.good{color:var(--post)}.bad{color:var(--delete)}
[hidden]{display:none!important}
@media(min-width:48rem){form{grid-template-columns:1fr 1fr}form .wide{grid-column:1/-1}}
]]
