"""Natural questions in nine languages, and the archived messages that answer them.

Of each language: pairs of a question and its answer, then messages about the same things that
answer none of them. Questions inflect words, or use others, as people do.
"""

from typing import Final, NamedTuple


class Language(NamedTuple):
    """Questions with the message that answers each, and messages beside them."""

    pairs: tuple[tuple[str, str], ...]
    others: tuple[str, ...]


LANGUAGES: Final[dict[str, Language]] = {
    "English": Language(
        (
            (
                "Which database did we choose for the orders?",
                "Let's go with PostgreSQL 16 as the database of the order service.",
            ),
            (
                "What did the user say about committing to main?",
                "Never commit on main directly. Open a pull request, even for a typo.",
            ),
            (
                "How long may a request take before it times out?",
                "Requests time out after 30 seconds; the gateway cuts them anyway.",
            ),
            (
                "Who reviews migrations?",
                "Every migration has to be reviewed by Priya before it is merged.",
            ),
            (
                "What is the port of the staging server?",
                "Staging listens on 8443, production on 443.",
            ),
            (
                "Why was the cache removed?",
                "I took the caching layer out: it served stale prices after a deployment.",
            ),
            (
                "How should dates be formatted in exports?",
                "In the exported files write dates as 2026-03-01, never with slashes.",
            ),
            (
                "Which tests are flaky?",
                "test_checkout_twice fails now and then: it is flaky since the upgrade of Redis.",
            ),
        ),
        (
            "The orders page has a new button. Which colour should it have?",
            "What did you do about the main menu? It is too long.",
            "How long is the list of requests before it is paged?",
            "Who wrote this? It does not say.",
            "The server of the old office is gone, its port was never documented.",
            "Why was the column removed? Because nobody read it.",
            "Dates should be stored with their zone in the database.",
            "Which tests did you run? All of them, they pass.",
        ),
    ),
    "German": Language(
        (
            (
                "Welche Datenbank nehmen wir für Bestellungen?",
                "Der Bestelldienst läuft auf PostgreSQL, eine andere Datenbankanbindung gibt es nicht.",
            ),
            (
                "Was gilt für das Löschen von Kunden?",
                "Kundendaten werden nie gelöscht, nur anonymisiert; die Löschfrist beträgt zehn Jahre.",
            ),
            (
                "Wie lautet die Frist für Rechnungen?",
                "Rechnungsfristen: 14 Tage für Privatleute, 30 für Firmen.",
            ),
            (
                "Wann wird das Zertifikat erneuert?",
                "Die Zertifikatserneuerung machen wir am ersten Montag im Mai.",
            ),
            (
                "Welche Schnittstelle hat der Versand?",
                "Für die Versandschnittstelle gilt: nur gRPC, kein REST.",
            ),
            (
                "Wer darf auf den Server zugreifen?",
                "Serverzugriff haben nur Anna und Jonas, sonst niemand.",
            ),
            (
                "Wie groß darf eine Datei beim Hochladen sein?",
                "Die maximale Dateigröße für Uploads ist 25 MB.",
            ),
            (
                "Warum haben wir die Warteschlange ausgetauscht?",
                "RabbitMQ flog raus, weil die Nachrichtenwarteschlange bei Neustarts alles vergaß.",
            ),
        ),
        (
            "Welche Bestellungen sind offen? Es gibt keine Liste.",
            "Was für ein Durcheinander. Wir nehmen das später auseinander.",
            "Wie lautet dein Plan für heute?",
            "Wann wird das Büro gestrichen? Im Sommer.",
            "Welche Farbe hat der Knopf für den Versand?",
            "Wer hat den Kuchen gegessen? Das darf nicht sein.",
            "Wie groß ist das Team? Acht Leute, eine beim Hochladen der Fotos.",
            "Warum haben wir so viele Dateien? Weil niemand aufräumt.",
        ),
    ),
    "Russian": Language(
        (
            (
                "Какую базу данных мы выбрали для заказов?",
                "Сервис заказов хранит всё в PostgreSQL, других баз не будет.",
            ),
            (
                "Что нельзя делать с веткой main?",
                "В ветку main напрямую не пушить, только через запрос на слияние.",
            ),
            (
                "Кто проверяет миграции?",
                "Каждую миграцию перед выкладкой проверяет Ольга.",
            ),
            (
                "Какой порт у тестового сервера?",
                "Тестовый сервер слушает порт 8443.",
            ),
            (
                "Почему убрали кэширование цен?",
                "Кэш удалили: после выкладки он отдавал старые цены.",
            ),
            (
                "В каком формате писать даты при выгрузке?",
                "В выгрузках даты пишем как 2026-03-01.",
            ),
            (
                "Сколько хранятся журналы?",
                "Срок хранения журналов — девяносто дней.",
            ),
            (
                "Где лежат ключи для подписи?",
                "Ключ подписи лежит в сейфе, путь secrets/sign.pem.",
            ),
        ),
        (
            "Какую кнопку мы выбрали для страницы?",
            "Что ты сделал вчера? Ничего нельзя понять.",
            "Кто идёт на обед?",
            "Какой сегодня день? Пятница.",
            "Почему так долго? Компьютер медленный.",
            "В каком месте ошибка? Пока непонятно.",
            "Сколько людей в команде? Восемь.",
            "Где лежат печеньки? На кухне.",
        ),
    ),
    "Hindi": Language(
        (
            (
                "ऑर्डर के लिए कौन सा डेटाबेस चुना गया?",
                "ऑर्डर सेवा में हम PostgreSQL डेटाबेस रखेंगे।",
            ),
            (
                "मुख्य शाखा के बारे में क्या नियम है?",
                "मुख्य शाखा पर सीधे कमिट मत करना, हमेशा अलग शाखा बनाओ।",
            ),
            (
                "माइग्रेशन की जाँच कौन करता है?",
                "हर माइग्रेशन को पहले प्रिया जाँचेगी।",
            ),
            (
                "परीक्षण सर्वर का पोर्ट क्या है?",
                "परीक्षण सर्वर 8443 पोर्ट पर चलता है।",
            ),
            (
                "कैश को क्यों हटाया गया?",
                "कैश हटा दिया क्योंकि वह पुरानी कीमतें दिखा रहा था।",
            ),
            (
                "तारीख किस रूप में लिखनी है?",
                "निर्यात फ़ाइलों में तारीखें 2026-03-01 जैसी लिखो।",
            ),
            (
                "लॉग कितने दिन रखे जाते हैं?",
                "लॉग नब्बे दिन तक रखो, फिर मिटा दो।",
            ),
            (
                "पासवर्ड की न्यूनतम लंबाई कितनी है?",
                "पासवर्ड कम से कम चौदह अक्षरों का हो।",
            ),
        ),
        (
            "बटन के लिए कौन सा रंग चुना गया?",
            "आज के बारे में क्या सोचते हो?",
            "खाना कौन बनाता है?",
            "यह क्या है? समझ नहीं आता।",
            "इतना समय क्यों लगा?",
            "किस दिन मिलना है?",
            "टीम में कितने लोग हैं?",
            "दरवाज़े की चाबी कहाँ है?",
        ),
    ),
    "Chinese": Language(
        (
            ("我们订单用的是什么数据库？", "订单服务统一用 PostgreSQL，数据库版本是 16。"),
            ("用户对直接推送到主分支有什么要求？", "禁止直接推送到 main 主分支，先开合并请求。"),
            ("请求超时设成了多少秒？", "所有请求的超时时间为三十秒，网关也一样。"),
            ("迁移脚本由谁来审核？", "每个迁移脚本合并前都要小林审一遍。"),
            ("测试环境的端口是多少？", "测试服监听 8443 端口。"),
            ("为什么把缓存去掉了？", "缓存层删了，因为发布以后价格是旧的。"),
            ("导出文件里日期怎么写？", "导出的日期一律写成 2026-03-01 这种格式。"),
            ("日志要保留多长时间？", "日志保留九十天，之后自动清理。"),
        ),
        (
            "我们用的是什么颜色的按钮？",
            "用户对新页面有什么看法？",
            "这个列表设成了多少行？",
            "午饭由谁来买？",
            "今天的温度是多少？",
            "为什么这么慢？电脑太旧了。",
            "这个词怎么写？我忘了。",
            "会议要开多长时间？",
        ),
    ),
    "Japanese": Language(
        (
            (
                "注文のデータベースは何を使うことになりましたか？",
                "注文サービスのDBはPostgreSQLにします。ほかのデータベースは使いません。",
            ),
            (
                "mainブランチについて何と言われましたか？",
                "mainには直接プッシュしないで、必ずブランチを切ってください。",
            ),
            (
                "タイムアウトは何秒に設定しましたか？",
                "リクエストのタイムアウトは30秒でお願いします。",
            ),
            (
                "マイグレーションは誰がレビューしますか？",
                "マイグレーションは必ず田中さんのレビューを通すこと。",
            ),
            (
                "ステージング環境のポート番号を教えてください。",
                "ステージングは8443番ポートで動いています。",
            ),
            (
                "キャッシュを外した理由は何ですか？",
                "デプロイ後に古い価格が出たので、キャッシュ層は外しました。",
            ),
            ("日付の書式はどうすればいいですか？", "エクスポートの日付は2026-03-01の形で書く。"),
            ("ログの保存期間はどれくらいですか？", "ログは九十日間保存して、その後は消す。"),
        ),
        (
            "ボタンの色は何を使うことになりましたか？",
            "新しい画面について何と言われましたか？",
            "今日は何時に終わりますか？",
            "お昼は誰が買いますか？",
            "会議室の場所を教えてください。",
            "遅い理由は何ですか？まだ分かりません。",
            "この件はどうすればいいですか？",
            "会議はどれくらいかかりますか？",
        ),
    ),
    "Korean": Language(
        (
            (
                "주문에 어떤 데이터베이스를 쓰기로 했나요?",
                "주문 서비스는 PostgreSQL로 갑니다. 데이터베이스는 하나만 둡니다.",
            ),
            (
                "메인 브랜치에 대해 뭐라고 했나요?",
                "메인 브랜치에는 직접 푸시하지 말고 꼭 풀 리퀘스트를 여세요.",
            ),
            ("요청 제한 시간은 몇 초인가요?", "요청의 제한시간은 삼십 초로 맞춰 주세요."),
            ("마이그레이션은 누가 검토하나요?", "마이그레이션을 합치기 전에 지민 님이 검토합니다."),
            ("스테이징 서버의 포트가 뭐죠?", "스테이징은 8443 포트에서 돌아갑니다."),
            ("캐시를 왜 없앴나요?", "배포 뒤에 옛날 가격이 나와서 캐시를 없앴습니다."),
            (
                "내보낼 때 날짜 형식은 어떻게 하나요?",
                "내보내기 파일의 날짜는 2026-03-01처럼 적습니다.",
            ),
            ("로그를 얼마 동안 보관하나요?", "로그 보관 기간은 구십 일입니다."),
        ),
        (
            "버튼에 어떤 색을 쓰기로 했나요?",
            "새 화면에 대해 뭐라고 했나요?",
            "지금 몇 시인가요?",
            "점심은 누가 사나요?",
            "이게 뭐죠? 모르겠어요.",
            "왜 이렇게 느린가요?",
            "이건 어떻게 하나요?",
            "회의는 얼마 동안 하나요?",
        ),
    ),
    "Thai": Language(
        (
            ("เราเลือกฐานข้อมูลอะไรสำหรับคำสั่งซื้อ", "บริการคำสั่งซื้อใช้ PostgreSQL เป็นฐานข้อมูลหลักเท่านั้น"),
            ("ผู้ใช้บอกอะไรเกี่ยวกับสาขาหลัก", "ห้ามพุชขึ้นสาขาหลักโดยตรง ให้เปิดคำขอรวมก่อนเสมอ"),
            ("คำขอหมดเวลาในกี่วินาที", "ตั้งให้คำขอหมดเวลาที่สามสิบวินาที"),
            ("ใครเป็นคนตรวจไฟล์ย้ายข้อมูล", "ไฟล์ย้ายข้อมูลทุกไฟล์ต้องให้คุณมะลิตรวจก่อน"),
            ("เซิร์ฟเวอร์ทดสอบใช้พอร์ตอะไร", "เซิร์ฟเวอร์ทดสอบฟังที่พอร์ต 8443"),
            ("ทำไมถึงเอาแคชออก", "เอาแคชออกแล้ว เพราะหลังอัปเดตมันแสดงราคาเก่า"),
            ("วันที่ในไฟล์ส่งออกเขียนแบบไหน", "ไฟล์ส่งออกให้เขียนวันที่แบบ 2026-03-01"),
            ("เก็บบันทึกไว้นานเท่าไร", "บันทึกของระบบเก็บไว้เก้าสิบวันแล้วลบ"),
        ),
        (
            "เราเลือกสีอะไรสำหรับปุ่ม",
            "ผู้ใช้บอกอะไรเกี่ยวกับหน้าใหม่",
            "เลิกงานในกี่ชั่วโมง",
            "ใครเป็นคนซื้อข้าว",
            "วันนี้ใช้ห้องอะไร",
            "ทำไมถึงช้าขนาดนี้",
            "คำนี้เขียนแบบไหน",
            "ประชุมนานเท่าไร",
        ),
    ),
    "Arabic": Language(
        (
            (
                "ما قاعدة البيانات التي اخترناها للطلبات؟",
                "خدمة الطلبات تعمل على PostgreSQL ولا نريد قواعد بيانات أخرى.",
            ),
            (
                "ماذا قال المستخدم عن الفرع الرئيسي؟",
                "ممنوع الدفع مباشرة إلى الفرع الرئيسي، افتح طلب دمج.",
            ),
            ("كم ثانية مهلة الطلب؟", "المهلة لكل طلب ثلاثون ثانية."),
            ("من يراجع ملفات الترحيل؟", "كل ملف ترحيل تراجعه ليلى قبل الدمج."),
            ("ما منفذ خادم الاختبار؟", "خادم الاختبار يستمع على المنفذ 8443."),
            ("لماذا حذفنا التخزين المؤقت؟", "أزلنا التخزين المؤقت لأنه كان يعرض أسعارا قديمة."),
            ("كيف نكتب التاريخ في الملفات المصدرة؟", "تكتب التواريخ في التصدير هكذا: 2026-03-01."),
            ("كم يوما نحتفظ بالسجلات؟", "نحتفظ بسجلات النظام تسعين يوما ثم نحذفها."),
        ),
        (
            "ما اللون الذي اخترناه للزر؟",
            "ماذا قال المدير عن الصفحة الجديدة؟",
            "كم الساعة الآن؟",
            "من يشتري الغداء؟",
            "ما اسم هذه القاعة؟",
            "لماذا كل هذا البطء؟",
            "كيف نكتب هذه الكلمة؟",
            "كم شخصا في الفريق؟",
        ),
    ),
}
"""72 questions, and as many messages beside their answers."""
